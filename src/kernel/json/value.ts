// From values to canonical text: what JSON.stringify keeps is written, what it would drop or change is refused.

import { RepriseError } from '../errors.js'
import { utf8Length } from '../text.js'
import { canonicalJson, type JsonLimits, limitOf } from './canonical.js'
import { innerKind } from './inner-state.js'
import { tooDeep, tooLarge } from './pass.js'

/**
 * The canonical text of a value: the same as {@link canonicalJson} gives for its `JSON.stringify`.
 *
 * Takes plain objects (undefined members are omitted), arrays (their elements), strings, finite numbers, booleans,
 * null, and bigint as an integer of that value. `toJSON` is honoured, so a Date is its ISO text, a URL its address, and
 * an instance of a class with a `toJSON` what that gives; a bigint is a number even where somebody gave
 * `BigInt.prototype` a `toJSON`.
 *
 * Refuses with JSON_VALUE_UNSUPPORTED everything JSON cannot express without loss: `details.kind` says what,
 * `details.path` where, as a JSON Pointer, and `details.depth` at which depth. That is NaN and infinities, functions,
 * symbols, undefined outside of members, holes of arrays, Map, Set, typed arrays and buffers, boxed primitives,
 * promises, regular expressions, errors and other objects with an inner state of their own; instances of classes
 * without a `toJSON`, whose private fields nobody can see; members with a symbol for their name, members that are not
 * enumerable and accessors that cannot be read; and cycles. Further refusals: JSON_LONE_SURROGATE, JSON_TOO_DEEP,
 * JSON_TOO_LARGE; the last one also for a bigint of more than 10,000 digits, whatever the limits, because the time to
 * print it grows faster than its size. An error thrown by a getter, a proxy or a `toJSON` passes through.
 */
export function canonicalJsonOf(value: unknown, limits?: JsonLimits): string {
  return print(value, limits, false)
}

/**
 * The same, for text that is read with `JSON.parse` later: what would come back as something else is refused with
 * JSON_VALUE_UNSUPPORTED too. That is every bigint and everything with a `toJSON` (dates and buffers among it). Members
 * that are undefined are left out: to read them gives undefined as before. Arrays of a class come back as arrays.
 */
export function readableJsonOf(value: unknown, limits?: JsonLimits): string {
  return print(value, limits, true)
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
const firstSize = 4_096
// Memory for larger texts is not kept, so that an idle process holds little.
const largestKept = 262_144
// Used again and again. Undefined while a text is being written: a getter or a toJSON may write one of its own.
let spare: Uint8Array | undefined

function print(value: unknown, limits: JsonLimits | undefined, readable: boolean): string {
  const walk = new ValueWalk(limits, readable, spare ?? new Uint8Array(firstSize))
  spare = undefined
  try {
    return decoder.decode(walk.print(value))
  } finally {
    if (walk.out.length <= largestKept) spare = walk.out
  }
}

// Twice as many as an RSA modulus of 16,384 bits has, printed in less than a millisecond.
const mostIntegerDigits = 10_000
let integerBound: bigint | undefined

type Members = Readonly<Record<string, unknown>>

const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const openBracket = 0x5b
const backslash = 0x5c
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

// Writes bytes: a string for each piece of the text would cost more than all the rest. Goes down by recursion: the
// depth is limited to a thousand, and frames of its own would cost more too.
class ValueWalk {
  /** The text so far, in its first bytes, as UTF-8. */
  out: Uint8Array
  #at = 0
  // Bytes that count, beyond those of the text.
  #more = 0
  readonly #maxBytes: number
  readonly #maxDepth: number
  readonly #readable: boolean
  readonly #ancestors = new Ancestors()
  // At each depth the member or element that is being written, so that a refusal can say where.
  readonly #names: (string | number)[] = []

  constructor(limits: JsonLimits | undefined, readable: boolean, out: Uint8Array) {
    this.#maxBytes = limitOf(limits, 'maxBytes')
    this.#maxDepth = limitOf(limits, 'maxDepth')
    this.#readable = readable
    this.out = out
  }

  print(value: unknown): Uint8Array {
    this.#emit(this.#prepared(value, ''))
    return this.out.subarray(0, this.#at)
  }

  #emit(value: unknown): void {
    if (typeof value === 'string') this.#writeString(value)
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
    const kind = innerKind(container) ?? (isOfNoClass(container) ? undefined : instance)
    if (kind !== undefined) throw this.#unsupported(kind)
    this.#open(container, openBrace)
    const names = Object.keys(container)
    const { depth } = this.#ancestors
    if (Object.getOwnPropertySymbols(container).length > 0) {
      throw this.#unsupported('member with a symbol for its name', depth - 1)
    }
    const all = Object.getOwnPropertyNames(container)
    if (all.length > names.length) {
      this.#names[depth] = all.find((name) => !names.includes(name)) as string
      throw this.#unsupported('member that is not enumerable')
    }
    let isFirst = true
    for (const name of sorted(names)) {
      this.#names[depth] = name
      const value = this.#prepared((container as Members)[name], name)
      if (value === undefined) {
        if (isWriteOnly(container, name)) throw this.#unsupported('accessor that cannot be read')
        continue
      }
      if (!isFirst) this.#writeByte(comma)
      isFirst = false
      this.#writeString(name)
      this.#writeByte(colon)
      this.#emit(value)
    }
    this.#close(container, closeBrace)
  }

  #writeArray(container: readonly unknown[]): void {
    if (!this.#readable && !Array.isArray(Object.getPrototypeOf(container))) throw this.#unsupported(instance)
    this.#open(container, openBracket)
    const { depth } = this.#ancestors
    // As long as it was in the beginning, whatever a getter or a toJSON does to it.
    const { length } = container
    for (let index = 0; index < length; index += 1) {
      if (index > 0) this.#writeByte(comma)
      this.#names[depth] = index
      const value = container[index]
      this.#emit(
        typeof value === 'object' || typeof value === 'function' ? this.#prepared(value, String(index)) : value,
      )
    }
    this.#close(container, closeBracket)
  }

  #open(container: object, bracket: number): void {
    if (this.#ancestors.has(container)) throw this.#unsupported('cycle')
    if (this.#ancestors.depth >= this.#maxDepth) throw tooDeep(this.#maxDepth)
    this.#writeByte(bracket)
    this.#ancestors.push(container)
  }

  #close(container: object, bracket: number): void {
    this.#ancestors.pop(container)
    this.#writeByte(bracket)
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

  #writeString(value: string): void {
    const { length } = value
    // In UTF-8 it has as many bytes at least.
    this.#makeRoom(length + 2)
    // Where quotes around it are all that it needs. Long ones are left to those who read them faster than a loop does.
    if (length <= longestLookedThrough) {
      const { out } = this
      let at = this.#at
      let index = 0
      out[at++] = quote
      for (; index < length; index += 1) {
        const unit = value.charCodeAt(index)
        if (unit < 0x20 || unit > 0x7e || unit === quote || unit === backslash) break
        out[at++] = unit
      }
      if (index === length) {
        out[at++] = quote
        this.#at = at
        return
      }
    }
    const bytes = utf8Length(value)
    if (bytes === undefined) {
      throw new RepriseError('JSON_LONE_SURROGATE', 'A string holds half of a surrogate pair.', {
        details: { depth: this.#ancestors.depth },
      })
    }
    // JSON.stringify escapes as RFC 8785 does, but for lone surrogates; and what is escaped is ASCII.
    const text = JSON.stringify(value)
    this.#makeRoom(text.length + bytes - length)
    this.#at += encoder.encodeInto(text, this.out.subarray(this.#at)).written
  }

  // Text in ASCII.
  #write(text: string): void {
    this.#makeRoom(text.length)
    for (let index = 0; index < text.length; index += 1) this.out[this.#at++] = text.charCodeAt(index)
  }

  #writeByte(byte: number): void {
    this.#makeRoom(1)
    this.out[this.#at++] = byte
  }

  // Doubles, so that all growth is linear.
  #makeRoom(bytes: number): void {
    const end = this.#at + bytes
    if (end + this.#more > this.#maxBytes) throw tooLarge(this.#maxBytes)
    if (end <= this.out.length) return
    const larger = new Uint8Array(Math.max(end, this.out.length * 2))
    larger.set(this.out.subarray(0, this.#at))
    this.out = larger
  }

  // What stands for the value, as in SerializeJSONProperty of ECMA-262.
  #prepared(value: unknown, name: string): unknown {
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return value
    const { toJSON } = value as { readonly toJSON?: unknown }
    if (typeof toJSON !== 'function') return value
    if (this.#readable) throw this.#unsupported(kindOf(value))
    return toJSON.call(value, name)
  }

  #unsupported(kind: string, depth: number = this.#ancestors.depth): RepriseError {
    const path = pointerTo(this.#names.slice(1, depth + 1))
    const message = `JSON cannot express this without loss: ${kind}, at ${path === '' ? 'the top' : path}.`
    return new RepriseError('JSON_VALUE_UNSUPPORTED', message, { details: { kind, depth, path } })
  }
}

const mostNames = 16
const longestName = 40

// A JSON Pointer, shortened, without what would tear a line of a log.
function pointerTo(names: readonly (string | number)[]): string {
  const shown = names.slice(0, mostNames).map((name) => {
    const text = String(name)
      .replace(/[\p{Cc}\p{Cs}]/gu, '\ufffd')
      .replaceAll('~', '~0')
      .replaceAll('/', '~1')
    return `/${text.length > longestName ? `${text.slice(0, longestName)}…` : text}`
  })
  return `${shown.join('')}${names.length > mostNames ? '/…' : ''}`
}

// A setter alone: what was written to it cannot be seen.
function isWriteOnly(container: object, name: string): boolean {
  const found = Object.getOwnPropertyDescriptor(container, name)
  return found?.set !== undefined && found.get === undefined
}

const instance = 'instance of a class'

function kindOf(value: object): string {
  return value instanceof Date ? 'Date' : (innerKind(value) ?? 'object with a toJSON')
}

// Also one of another realm, whose prototype is not ours.
function isOfNoClass(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) return true
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype as object, 'isPrototypeOf')
}

const longestLookedThrough = 64

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
