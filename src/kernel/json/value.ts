// From values to canonical text: what JSON.stringify keeps is written, what it would drop or change is refused.

import { RepriseError } from '../errors.js'
import { utf8Length } from '../text.js'
import { canonicalJson, type JsonLimits, limitOf } from './canonical.js'
import { innerKind } from './inner-state.js'
import { tooDeep, tooLarge } from './pass.js'

/**
 * The canonical text of a value: the same as {@link canonicalJson} gives for its `JSON.stringify`.
 *
 * Takes objects (their own enumerable members with string names, whatever their class; undefined ones are omitted),
 * arrays, strings, finite numbers, booleans, null, and bigint as an integer of that value. `toJSON` is honoured, so a
 * Date is its ISO text; a bigint is a number even where somebody gave `BigInt.prototype` a `toJSON`.
 *
 * Refuses with JSON_VALUE_UNSUPPORTED, `details.kind` saying what and `details.depth` at which depth, everything JSON
 * cannot express without loss: NaN and infinities, functions, symbols, undefined outside of members, holes of arrays,
 * Map, Set, typed arrays and buffers, boxed primitives, promises, regular expressions, errors and other objects with an
 * inner state of their own, and cycles. Further refusals: JSON_LONE_SURROGATE, JSON_TOO_DEEP, JSON_TOO_LARGE; the last
 * one also for a bigint of more than 10,000 digits, whatever the limits, because the time to print it grows faster than
 * its size. An error thrown by a getter, a proxy or a `toJSON` passes through.
 */
export function canonicalJsonOf(value: unknown, limits?: JsonLimits): string {
  return new ValueWalk(limits, false).print(value)
}

/**
 * The same, for text that is read with `JSON.parse` later: what would come back as something else is refused with
 * JSON_VALUE_UNSUPPORTED too. That is every bigint, everything with a `toJSON` (dates and buffers among it), and every
 * instance of a class. Members that are undefined are left out: to read them gives undefined as before.
 */
export function readableJsonOf(value: unknown, limits?: JsonLimits): string {
  return new ValueWalk(limits, true).print(value)
}

// Twice as many as an RSA modulus of 16,384 bits has, printed in less than a millisecond.
const mostIntegerDigits = 10_000
let integerBound: bigint | undefined

type Members = Readonly<Record<string, unknown>>

// Goes down by recursion: the depth is limited to a thousand, and frames of its own would cost more than all the rest.
class ValueWalk {
  #text = ''
  // Bytes of UTF-8 beyond one for each unit of the text.
  #more = 0
  readonly #maxBytes: number
  readonly #maxDepth: number
  readonly #readable: boolean
  readonly #ancestors = new Ancestors()

  constructor(limits: JsonLimits | undefined, readable: boolean) {
    this.#maxBytes = limitOf(limits, 'maxBytes')
    this.#maxDepth = limitOf(limits, 'maxDepth')
    this.#readable = readable
  }

  print(value: unknown): string {
    this.#emit(this.#prepared(value, ''))
    return this.#text
  }

  #emit(value: unknown): void {
    if (typeof value === 'string') this.#write(this.#quoted(value))
    else if (typeof value === 'number') this.#writeNumber(value)
    else if (typeof value === 'object') {
      if (value === null) this.#write('null')
      else if (Array.isArray(value)) this.#writeArray(value)
      else this.#writeObject(value)
    } else if (typeof value === 'boolean') this.#write(value ? 'true' : 'false')
    else if (typeof value === 'bigint') this.#writeInteger(value)
    else throw this.#unsupported(typeof value)
  }

  #writeObject(container: object): void {
    const kind = innerKind(container) ?? (this.#readable && !isOfNoClass(container) ? 'instance of a class' : undefined)
    if (kind !== undefined) throw this.#unsupported(kind)
    this.#open(container, '{')
    let separator = ''
    for (const name of sorted(Object.keys(container))) {
      const value = this.#prepared((container as Members)[name], name)
      if (value === undefined) continue
      this.#write(`${separator}${this.#quoted(name)}:`)
      separator = ','
      this.#emit(value)
    }
    this.#close(container, '}')
  }

  #writeArray(container: readonly unknown[]): void {
    this.#open(container, '[')
    // As long as it was in the beginning, whatever a getter or a toJSON does to it.
    const { length } = container
    for (let index = 0; index < length; index += 1) {
      if (index > 0) this.#write(',')
      const value = container[index]
      this.#emit(
        typeof value === 'object' || typeof value === 'function' ? this.#prepared(value, String(index)) : value,
      )
    }
    this.#close(container, ']')
  }

  #open(container: object, bracket: string): void {
    if (this.#ancestors.has(container)) throw this.#unsupported('cycle')
    if (this.#ancestors.depth >= this.#maxDepth) throw tooDeep(this.#maxDepth)
    this.#write(bracket)
    this.#ancestors.push(container)
  }

  #close(container: object, bracket: string): void {
    this.#ancestors.pop(container)
    this.#write(bracket)
  }

  #writeNumber(value: number): void {
    if (!Number.isFinite(value)) throw this.#unsupported('number that is not finite')
    // Adding zero turns -0 into 0.
    this.#write(String(value + 0))
  }

  // Comparing is cheap for any size; printing is not.
  #writeInteger(value: bigint): void {
    if (this.#readable) throw this.#unsupported('bigint')
    integerBound ??= 10n ** BigInt(mostIntegerDigits)
    if (value >= integerBound || value <= -integerBound) {
      throw new RepriseError('JSON_TOO_LARGE', `A bigint has more than ${mostIntegerDigits} digits.`, {
        details: { maxDigits: mostIntegerDigits },
      })
    }
    const digits = value.toString()
    const text = canonicalJson(digits, { maxBytes: this.#maxBytes, maxDepth: this.#maxDepth })
    // All digits count, since all were work: 10n ** 9_999n is but seven bytes of text.
    this.#more += Math.max(0, digits.length - text.length)
    this.#write(text)
  }

  // Counts what has more bytes than units.
  #quoted(value: string): string {
    if (isPlain(value)) return `"${value}"`
    if (value.length > this.#maxBytes - this.#text.length - this.#more) throw tooLarge(this.#maxBytes)
    // JSON.stringify escapes as RFC 8785 does, but for lone surrogates, which are refused here.
    const bytes = utf8Length(value)
    if (bytes === undefined) {
      throw new RepriseError('JSON_LONE_SURROGATE', 'A string holds half of a surrogate pair.', {
        details: { depth: this.#ancestors.depth },
      })
    }
    this.#more += bytes - value.length
    return JSON.stringify(value)
  }

  // The text is ASCII, or its further bytes have been counted.
  #write(text: string): void {
    this.#text += text
    if (this.#text.length + this.#more > this.#maxBytes) throw tooLarge(this.#maxBytes)
  }

  // What stands for the value, as in SerializeJSONProperty of ECMA-262.
  #prepared(value: unknown, name: string): unknown {
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return value
    const { toJSON } = value as { readonly toJSON?: unknown }
    if (typeof toJSON !== 'function') return value
    if (this.#readable) throw this.#unsupported(kindOf(value))
    return toJSON.call(value, name)
  }

  #unsupported(kind: string): RepriseError {
    const { depth } = this.#ancestors
    return new RepriseError(
      'JSON_VALUE_UNSUPPORTED',
      `JSON cannot express this without loss: ${kind}, at depth ${depth}.`,
      {
        details: { kind, depth },
      },
    )
  }
}

function kindOf(value: object): string {
  return value instanceof Date ? 'Date' : (innerKind(value) ?? 'object with a toJSON')
}

// Also one of another realm, whose prototype is not ours.
function isOfNoClass(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null
}

const longestLookedThrough = 64

// Whether quotes around it are all that a text needs. Long ones are left to those who read them faster than a loop
// does.
function isPlain(text: string): boolean {
  const { length } = text
  if (length > longestLookedThrough) return false
  for (let index = 0; index < length; index += 1) {
    const unit = text.charCodeAt(index)
    if (unit < 0x20 || unit > 0x7e || unit === 0x22 || unit === 0x5c) return false
  }
  return true
}

const fewNames = 24

// By UTF-16 code units, as RFC 8785 wants it and as `sort` does it, which takes three times as long for the few names
// that objects have.
function sorted(names: string[]): string[] {
  if (names.length > fewNames) return names.sort()
  for (let next = 1; next < names.length; next += 1) {
    const name = names[next] as string
    let place = next
    for (; place > 0 && (names[place - 1] as string) > name; place -= 1) names[place] = names[place - 1] as string
    names[place] = name
  }
  return names
}

// The containers around the one that is being written, so that a cycle is seen where it closes.
const fewest = 16

/** Containers, each inside the one before it. Asked of every container, so the usual few are simply looked through. */
class Ancestors {
  depth = 0
  readonly #outer: object[] = []
  #inner: Set<object> | undefined

  has(container: object): boolean {
    const outer = this.#outer
    for (let place = Math.min(this.depth, fewest) - 1; place >= 0; place -= 1) {
      if (outer[place] === container) return true
    }
    return this.depth > fewest && this.#inner?.has(container) === true
  }

  push(container: object): void {
    if (this.depth < fewest) this.#outer[this.depth] = container
    else {
      this.#inner ??= new Set()
      this.#inner.add(container)
    }
    this.depth += 1
  }

  pop(container: object): void {
    this.depth -= 1
    if (this.depth >= fewest) this.#inner?.delete(container)
  }
}
