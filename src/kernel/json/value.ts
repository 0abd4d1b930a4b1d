// From values to canonical text: what JSON.stringify keeps is written, what it would drop or change is refused.

import { RepriseError } from '../errors.js'
import { utf8Length } from '../well-formed.js'
import { canonicalJson } from './canonical.js'
import { innerKind } from './inner-state.js'
import { type JsonLimits, resolveLimits, tooDeep, tooLarge } from './limits.js'

/**
 * The canonical text of a value: the same as {@link canonicalJson} gives for its `JSON.stringify`.
 *
 * Takes objects (their own enumerable members with string names, whatever their class; undefined ones are omitted),
 * arrays, strings, finite numbers, booleans, null, and bigint as an integer of that value. `toJSON` is honoured, so a
 * Date is its ISO text; a bigint is a number even where somebody gave `BigInt.prototype` a `toJSON`.
 *
 * Refuses with JSON_VALUE_UNSUPPORTED, `details.kind` saying what and `details.depth` at which depth, everything JSON
 * cannot express without loss: NaN and infinities, functions, symbols, undefined outside of members, holes of arrays, Map,
 * Set, typed arrays and buffers, boxed primitives, promises, regular expressions, errors and other objects with an inner
 * state of their own, and cycles. Further refusals: JSON_LONE_SURROGATE, JSON_TOO_DEEP, JSON_TOO_LARGE; the last one also
 * for a bigint of more than 10,000 digits, whatever the limits, because the time to print it grows faster than its size.
 * An error thrown by a getter, a proxy or a `toJSON` passes through.
 */
export function canonicalJsonOf(value: unknown, limits?: JsonLimits): string {
  const walk = new ValueWalk(resolveLimits(limits))
  walk.enter(value, '')
  while (walk.step());
  return walk.text
}

// Twice as many as an RSA modulus of 16,384 bits has, printed in less than a millisecond.
const mostIntegerDigits = 10_000
let integerBound: bigint | undefined

interface Frame {
  readonly container: object
  /** Names in order for an object; undefined for an array. */
  readonly names: readonly string[] | undefined
  readonly count: number
  next: number
  isEmpty: boolean
}

class ValueWalk {
  text = ''
  #bytes = 0
  readonly #limits: Required<JsonLimits>
  readonly #frames: Frame[] = []
  readonly #ancestors = new Set<object>()

  constructor(limits: Required<JsonLimits>) {
    this.#limits = limits
  }

  // Writes one more member, element or closing bracket; answers whether anything is left.
  step(): boolean {
    const frame = this.#frames.at(-1)
    if (frame === undefined) return false
    if (frame.next === frame.count) {
      this.#write(frame.names === undefined ? ']' : '}')
      this.#ancestors.delete(frame.container)
      this.#frames.pop()
      return this.#frames.length > 0
    }
    const name = frame.names === undefined ? String(frame.next) : (frame.names[frame.next] as string)
    frame.next += 1
    const value = this.#prepare(Reflect.get(frame.container, name), name)
    if (value === undefined && frame.names !== undefined) return true
    if (!frame.isEmpty) this.#write(',')
    frame.isEmpty = false
    if (frame.names !== undefined) {
      this.#writeString(name)
      this.#write(':')
    }
    this.#emit(value)
    return true
  }

  enter(value: unknown, name: string): void {
    this.#emit(this.#prepare(value, name))
  }

  // What stands for the value, as in SerializeJSONProperty of ECMA-262.
  #prepare(value: unknown, name: string): unknown {
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return value
    const toJson: unknown = Reflect.get(value, 'toJSON')
    return typeof toJson === 'function' ? toJson.call(value, name) : value
  }

  #emit(value: unknown): void {
    if (typeof value === 'string') this.#writeString(value)
    else if (typeof value === 'number') this.#writeNumber(value)
    else if (typeof value === 'bigint') this.#writeInteger(value)
    else if (typeof value === 'boolean') this.#write(value ? 'true' : 'false')
    else if (value === null) this.#write('null')
    else if (typeof value === 'object') this.#open(value)
    else throw this.#unsupported(typeof value)
  }

  #open(container: object): void {
    const isArray = Array.isArray(container)
    const kind = isArray ? undefined : innerKind(container)
    if (kind !== undefined) throw this.#unsupported(kind)
    if (this.#ancestors.has(container)) throw this.#unsupported('cycle')
    if (this.#frames.length >= this.#limits.maxDepth) throw tooDeep(this.#limits.maxDepth)
    const names = isArray ? undefined : Object.keys(container).sort()
    const count = isArray ? container.length : (names as string[]).length
    this.#write(isArray ? '[' : '{')
    this.#ancestors.add(container)
    this.#frames.push({ container, names, count, next: 0, isEmpty: true })
  }

  #writeNumber(value: number): void {
    if (!Number.isFinite(value)) throw this.#unsupported('number that is not finite')
    // Adding zero turns -0 into 0.
    this.#write(String(value + 0))
  }

  // Comparing is cheap for any size; printing is not.
  #writeInteger(value: bigint): void {
    integerBound ??= 10n ** BigInt(mostIntegerDigits)
    if (value >= integerBound || value <= -integerBound) {
      throw new RepriseError('JSON_TOO_LARGE', `A bigint has more than ${mostIntegerDigits} digits.`, {
        details: { maxDigits: mostIntegerDigits },
      })
    }
    const digits = value.toString()
    const text = canonicalJson(digits, this.#limits)
    // All digits count, since all were work: 10n ** 9_999n is but seven bytes of text.
    this.#bytes += Math.max(0, digits.length - text.length)
    this.#write(text)
  }

  #writeString(value: string): void {
    if (value.length > this.#limits.maxBytes - this.#bytes) throw tooLarge(this.#limits.maxBytes)
    // JSON.stringify escapes as RFC 8785 does, but for lone surrogates, which are refused here.
    const text = JSON.stringify(value)
    const bytes = utf8Length(value)
    if (bytes === undefined) {
      throw new RepriseError('JSON_LONE_SURROGATE', 'A string holds half of a surrogate pair.', {
        details: { depth: this.#frames.length },
      })
    }
    this.#bytes += bytes - value.length
    this.#write(text)
  }

  // The text is ASCII, or its further bytes have been counted.
  #write(text: string): void {
    this.#bytes += text.length
    if (this.#bytes > this.#limits.maxBytes) throw tooLarge(this.#limits.maxBytes)
    this.text += text
  }

  #unsupported(kind: string): RepriseError {
    const depth = this.#frames.length
    return new RepriseError(
      'JSON_VALUE_UNSUPPORTED',
      `JSON cannot express this without loss: ${kind}, at depth ${depth}.`,
      {
        details: { kind, depth },
      },
    )
  }
}
