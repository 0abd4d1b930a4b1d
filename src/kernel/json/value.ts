// From values to canonical text: what JSON.stringify keeps is written, what it would drop or change is refused.

import { RepriseError } from '../errors.js'
import { canonicalJson } from './canonical.js'
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
 * state of their own, and cycles. Further refusals: JSON_LONE_SURROGATE, JSON_TOO_DEEP, JSON_TOO_LARGE.
 * An error thrown by a getter, a proxy or a `toJSON` passes through.
 */
export function canonicalJsonOf(value: unknown, limits?: JsonLimits): string {
  const walk = new ValueWalk(resolveLimits(limits))
  walk.enter(value, '')
  while (walk.step());
  return walk.text
}

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
    if (!isArray) {
      const tag = Object.prototype.toString.call(container).slice('[object '.length, -1)
      // The tag may be any text of the caller's, so an error names only those that are known.
      if (tag !== 'Object') throw this.#unsupported(knownTags.has(tag) ? tag : 'object with an inner state')
    }
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

  // There are at least as many decimal digits as hexadecimal ones, which are cheap to make: the check before the work.
  #writeInteger(value: bigint): void {
    if (value.toString(16).length > this.#limits.maxBytes - this.#bytes) throw tooLarge(this.#limits.maxBytes)
    const digits = value.toString()
    if (digits.length > this.#limits.maxBytes - this.#bytes) throw tooLarge(this.#limits.maxBytes)
    this.#write(canonicalJson(digits, this.#limits))
  }

  #writeString(value: string): void {
    if (value.length > this.#limits.maxBytes - this.#bytes) throw tooLarge(this.#limits.maxBytes)
    // JSON.stringify escapes as RFC 8785 does, but for lone surrogates, which are refused here.
    const text = JSON.stringify(value)
    const wider = bytesBeyondLength(value)
    if (wider === undefined) {
      throw new RepriseError('JSON_LONE_SURROGATE', 'A string holds half of a surrogate pair.', {
        details: { depth: this.#frames.length },
      })
    }
    this.#bytes += wider
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

const knownTags: ReadonlySet<string> = new Set([
  ...['Arguments', 'ArrayBuffer', 'SharedArrayBuffer', 'DataView', 'BigInt64Array', 'BigUint64Array'],
  ...['Float32Array', 'Float64Array', 'Int8Array', 'Int16Array', 'Int32Array'],
  ...['Uint8Array', 'Uint8ClampedArray', 'Uint16Array', 'Uint32Array'],
  ...['Boolean', 'Number', 'String', 'Symbol', 'BigInt'],
  ...['Error', 'Map', 'Promise', 'RegExp', 'Set', 'URLSearchParams', 'WeakMap', 'WeakRef', 'WeakSet'],
])

// How many bytes of UTF-8 a text has beyond one per code unit; undefined where it holds half of a surrogate pair.
function bytesBeyondLength(text: string): number | undefined {
  let beyond = 0
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit < 0x80) continue
    if (unit < 0x800) beyond += 1
    else if (unit < 0xd800 || unit > 0xdfff) beyond += 2
    else {
      const next = text.charCodeAt(index + 1)
      if (unit > 0xdbff || !(next >= 0xdc00 && next <= 0xdfff)) return undefined
      beyond += 2
      index += 1
    }
  }
  return beyond
}
