// From raw text to canonical text by one pass over the bytes: nothing becomes a value, so nothing is lost in one.
//
// The scanner checks the grammar of RFC 8259 and writes each token in canonical form. It keeps its own stack instead of
// calling itself, so depth costs no stack of the caller.

import { isRepriseError, RepriseError } from '../errors.js'
import { byteCount, isWellFormed } from '../text.js'
import { type OpenObject, Order } from './order.js'
import { callerOffset, type Pass, padding, tooDeep, tooLarge, unexpectedAt } from './pass.js'
import { emitNumber, emitString } from './tokens.js'

/** Bounds on one JSON document. */
export interface JsonLimits {
  /**
   * The largest document, in bytes of UTF-8: of the source for {@link canonicalJson}, of the canonical text for
   * {@link canonicalJsonOf}, where a bigint counts with all its digits. From 0 to 64 MiB. Default: 1 MiB (1,048,576).
   */
  readonly maxBytes?: number
  /**
   * How many arrays and objects may lie inside each other; a bare number has depth 0. From 0 to 1,000. Default: 128.
   */
  readonly maxDepth?: number
}

const defaultLimits: Required<JsonLimits> = { maxBytes: 1_048_576, maxDepth: 128 }
// A number can grow when it is written out (1e20 has 4 bytes, its canonical text 21), and a string of V8 ends at
// 512 MiB: sources up to 64 MiB always fit.
const largestLimits: Required<JsonLimits> = { maxBytes: 67_108_864, maxDepth: 1_000 }

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/**
 * The canonical text of a JSON document, given as text or as UTF-8 bytes.
 *
 * Documents that differ only in white space, order of members, escapes or the spelling of numbers have the same
 * canonical text; any others have different ones. It is the text of RFC 8785, except where that would change a value:
 * - numbers keep all their digits (9007199254740993 stays; RFC 8785 gives …992), and are laid out as ECMAScript does;
 * - duplicate members are kept, in source order among themselves;
 * - `__proto__` is a name like any other.
 *
 * Takes linear time (n log n in the members of one object), and no stack of the caller.
 *
 * Refuses with an error whose `details.offset` says where: in bytes for bytes, in UTF-16 code units for a string.
 * The first fault in the text decides.
 * - JSON_SYNTAX: what `JSON.parse` would refuse; a byte order mark too.
 * - JSON_ENCODING: bytes that are not UTF-8.
 * - JSON_LONE_SURROGATE: half of a surrogate pair, raw or as an escape.
 * - JSON_NUMBER_RANGE: a number with an exponent of more than 15 digits once normalised.
 * - JSON_TOO_LARGE (without an offset, before anything else) and JSON_TOO_DEEP: past the limits.
 * - ARGUMENT_INVALID (without an offset): neither text nor bytes, or bytes whose buffer was transferred.
 *
 * @example
 * ```ts
 * import { canonicalJson } from 'reprise/kernel'
 *
 * console.log(canonicalJson('{ "b": 1.0, "a": 9007199254740993 }'))
 * ```
 * ```text
 * {"a":9007199254740993,"b":1}
 * ```
 */
export function canonicalJson(source: string | Uint8Array, limits?: JsonLimits): string {
  const maxBytes = limitOf(limits, 'maxBytes')
  const maxDepth = limitOf(limits, 'maxDepth')
  const fromString = typeof source === 'string'
  try {
    const size = load(source, maxBytes)
    if (fromString && !isWellFormed(source)) throw faultOfIllFormed(source, maxBytes, maxDepth)
    return decoder.decode(scanner.run(size, fromString, maxDepth))
  } finally {
    if (scanner.out.length > largestKept || scanner.source.length > largestKept) scanner = new Scanner()
  }
}

/** One of the limits, or its default; refuses nonsense with ARGUMENT_INVALID. */
export function limitOf(limits: JsonLimits | undefined, argument: keyof JsonLimits): number {
  if (limits === undefined) return defaultLimits[argument]
  if (typeof limits !== 'object' || limits === null) {
    throw new RepriseError('ARGUMENT_INVALID', 'Limits have to be an object.', { details: { argument: 'limits' } })
  }
  const value = limits[argument] ?? defaultLimits[argument]
  const largest = largestLimits[argument]
  if (Number.isInteger(value) && value >= 0 && value <= largest) return value
  const message = `${argument} has to be a whole number from 0 to ${largest}.`
  throw new RepriseError('ARGUMENT_INVALID', message, { details: { argument, largest } })
}

// Copies the source, so that nobody can change it while it is read; gives its size in bytes.
function load(source: string | Uint8Array, maxBytes: number): number {
  const isText = typeof source === 'string'
  const size = isText ? source.length : byteCount(source)
  if (size === undefined) {
    throw new RepriseError('ARGUMENT_INVALID', 'The source has to be a string or a Uint8Array.')
  }
  if (size > maxBytes) throw tooLarge(maxBytes)
  // A code unit takes three bytes at most. Encoding stops where the limit is reached, so this is the check as well.
  const most = isText ? Math.min(size * 3, maxBytes) : size
  if (most + padding > scanner.source.length) scanner.source = new Uint8Array(most + padding)
  if (!isText) {
    scanner.source.set(source)
    return size
  }
  const { read, written } = encoder.encodeInto(source, scanner.source.subarray(0, most))
  if (read < size) throw tooLarge(maxBytes)
  return written
}

// Encoding makes every half of a surrogate pair U+FFFD, as if that had been written, so such text never gets that far.
// What stands before the first one may have a fault of its own, and the first fault decides.
function faultOfIllFormed(source: string, maxBytes: number, maxDepth: number): unknown {
  const lone = source.search(/\p{Surrogate}/u)
  try {
    scanner.run(load(source.slice(0, lone), maxBytes), true, maxDepth)
  } catch (error) {
    if (!isRepriseError(error)) return error
    const { offset } = error.details
    if (typeof offset === 'number' && offset < lone) return error
  }
  const message = `The text holds half of a surrogate pair at offset ${lone}.`
  return new RepriseError('JSON_LONE_SURROGATE', message, { details: { offset: lone } })
}

const quote = 0x22
const comma = 0x2c
const minus = 0x2d
const zero = 0x30
const nine = 0x39
const colon = 0x3a
const openBracket = 0x5b
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

const literals: Readonly<Record<number, Uint8Array>> = {
  102: bytesOf('false'),
  110: bytesOf('null'),
  116: bytesOf('true'),
}

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0))
}

/** What is known of an array or object while it is open. */
interface Frame extends OpenObject {
  start: number
  isObject: boolean
  membersFrom: number
  innerFrom: number
}

const firstSize = 4_096

/**
 * Reads documents, one after the other, and keeps its memory: for small documents, making it would take longer than
 * using it.
 */
class Scanner implements Pass {
  source: Uint8Array = new Uint8Array(firstSize)
  end = 0
  fromString = false
  at = 0
  out: Uint8Array = new Uint8Array(firstSize)
  outAt = 0
  #result = new Uint8Array(firstSize)
  readonly #order = new Order()
  // One frame for every depth that was ever reached; the first stands for the document itself.
  readonly #frames: Frame[] = [newFrame()]
  #depth = 0
  // The innermost open array or object.
  #frame: Frame = this.#frames[0] as Frame

  /** The canonical text of the document in the first `end` bytes of the source. Valid until the next one is read. */
  run(end: number, fromString: boolean, maxDepth: number): Uint8Array {
    const order = this.#order
    this.source.fill(0, end, end + padding)
    if (end + padding > this.out.length) this.out = new Uint8Array(end + padding)
    this.end = end
    this.fromString = fromString
    this.at = 0
    this.outAt = 0
    this.#depth = 0
    order.memberCount = 0
    order.objectCount = 0
    do {
      let byte = this.#skipSpace()
      while ((byte === openBrace || byte === openBracket) && this.#open(byte, maxDepth)) byte = this.#skipSpace()
      if (byte === quote) emitString(this)
      else if ((byte >= zero && byte <= nine) || byte === minus) emitNumber(this)
      else if (byte !== openBrace && byte !== openBracket) this.#emitLiteral(byte)
    } while (this.#advance())
    if (this.at < end) throw unexpectedAt(this, this.at)
    const { out, outAt } = this
    if (order.objectCount === 0) return out.subarray(0, outAt)
    if (outAt > this.#result.length) this.#result = new Uint8Array(outAt)
    order.resolve(out, outAt, this.#result)
    return this.#result.subarray(0, outAt)
  }

  // Moves over white space; answers the byte behind it.
  #skipSpace(): number {
    const { source } = this
    let at = this.at
    let byte = source[at] as number
    while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) byte = source[++at] as number
    this.at = at
    return byte
  }

  #emitLiteral(byte: number): void {
    const literal = literals[byte]
    if (literal === undefined) throw unexpectedAt(this, this.at)
    for (const expected of literal) {
      if (this.source[this.at] !== expected) throw unexpectedAt(this, this.at)
      this.at += 1
      this.out[this.outAt++] = expected
    }
  }

  // Opens an array or object; answers false where it is empty, and so has ended already.
  #open(byte: number, maxDepth: number): boolean {
    if (this.#depth >= maxDepth) throw tooDeep(maxDepth, { offset: callerOffset(this, this.at) })
    const start = this.outAt
    const isObject = byte === openBrace
    const close = isObject ? closeBrace : closeBracket
    this.at += 1
    this.out[this.outAt++] = byte
    if (this.#skipSpace() === close) {
      this.at += 1
      this.out[this.outAt++] = close
      return false
    }
    this.#depth += 1
    if (this.#depth === this.#frames.length) this.#frames.push(newFrame())
    const frame = this.#frames[this.#depth] as Frame
    frame.start = start
    frame.isObject = isObject
    frame.isInOrder = true
    frame.membersFrom = this.#order.memberCount
    frame.innerFrom = this.#order.objectCount
    this.#frame = frame
    if (isObject) this.#emitName(frame)
    return true
  }

  // Moves on behind a value; answers whether another value follows.
  #advance(): boolean {
    const order = this.#order
    for (;;) {
      const byte = this.#skipSpace()
      if (this.#depth === 0) return false
      const frame = this.#frame
      const { isObject } = frame
      if (byte !== comma && byte !== (isObject ? closeBrace : closeBracket)) throw unexpectedAt(this, this.at)
      this.at += 1
      this.out[this.outAt++] = byte
      if (byte === comma) {
        if (isObject) this.#emitName(frame)
        return true
      }
      if (!frame.isInOrder) order.add(this.out, frame, this.outAt)
      order.memberCount = frame.membersFrom
      this.#depth -= 1
      this.#frame = this.#frames[this.#depth] as Frame
    }
  }

  // Writes the name of a member and the colon behind it.
  #emitName(frame: Frame): void {
    if (this.#skipSpace() !== quote) throw unexpectedAt(this, this.at)
    const start = this.outAt
    emitString(this)
    this.#order.begin(this.out, start, this.outAt, frame)
    if (this.#skipSpace() !== colon) throw unexpectedAt(this, this.at)
    this.at += 1
    this.out[this.outAt++] = colon
  }
}

function newFrame(): Frame {
  return { start: 0, isObject: false, isInOrder: true, membersFrom: 0, innerFrom: 0 }
}

// Memory for larger documents is not kept, so that an idle process holds little.
const largestKept = 262_144 + padding

let scanner = new Scanner()
