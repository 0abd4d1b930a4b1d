// The structure of a document: one pass that checks the grammar of RFC 8259 and writes each token in canonical form.
//
// It keeps its own stack instead of calling itself, so depth costs no stack of the caller.

import { tooDeep } from './limits.js'
import { emitNumber } from './number.js'
import { Disorders, Members, type OpenObject } from './order.js'
import { callerOffset, type Pass, unexpectedAt } from './pass.js'
import { emitString } from './string.js'

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
  /** Whether the members so far are in order. */
  isInOrder: boolean
  membersFrom: number
  innerFrom: number
}

/** Reads documents, one after the other; keeps its arrays from one to the next. */
export class DocumentPass {
  /** The objects that are out of order, after a run. */
  readonly disorders: Disorders = new Disorders()
  readonly #pass: Pass
  readonly #members = new Members()
  // One frame for every depth that was ever reached; the first stands for the document itself.
  readonly #frames: Frame[] = [newFrame()]
  #maxDepth = 0
  #depth = 0
  // The innermost open array or object.
  #frame: Frame = this.#frames[0] as Frame

  constructor(pass: Pass) {
    this.#pass = pass
  }

  /** Writes the whole document in canonical form, but for the order of members. */
  run(maxDepth: number): void {
    this.disorders.clear()
    this.#members.count = 0
    this.#maxDepth = maxDepth
    this.#depth = 0
    do {
      while (!this.#emitValue());
    } while (this.#advance())
    this.#skipSpace()
    if (this.#pass.at < this.#pass.end) throw unexpectedAt(this.#pass, this.#pass.at)
  }

  // Moves over white space; answers the byte behind it.
  #skipSpace(): number {
    const { source } = this.#pass
    let at = this.#pass.at
    let byte = source[at] as number
    while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) byte = source[++at] as number
    this.#pass.at = at
    return byte
  }

  // Copies the one byte that has just been looked at.
  #copy(byte: number): void {
    const pass = this.#pass
    pass.at += 1
    pass.out[pass.outAt++] = byte
  }

  // Writes a value; answers false where it has only begun: an array or object was opened, and holds a value.
  #emitValue(): boolean {
    const pass = this.#pass
    const byte = this.#skipSpace()
    if (byte === quote) emitString(pass)
    else if ((byte >= zero && byte <= nine) || byte === minus) emitNumber(pass)
    else if (byte === openBrace || byte === openBracket) return this.#open(byte)
    else this.#emitLiteral(byte)
    return true
  }

  #emitLiteral(byte: number): void {
    const literal = literals[byte]
    if (literal === undefined) throw unexpectedAt(this.#pass, this.#pass.at)
    for (const expected of literal) {
      if (this.#pass.source[this.#pass.at] !== expected) throw unexpectedAt(this.#pass, this.#pass.at)
      this.#copy(expected)
    }
  }

  #open(byte: number): boolean {
    const pass = this.#pass
    if (this.#depth >= this.#maxDepth) throw tooDeep(this.#maxDepth, { offset: callerOffset(pass, pass.at) })
    const start = pass.outAt
    const isObject = byte === openBrace
    const close = isObject ? closeBrace : closeBracket
    this.#copy(byte)
    if (this.#skipSpace() === close) {
      this.#copy(close)
      return true
    }
    this.#depth += 1
    const frame = this.#frameAt(this.#depth)
    frame.start = start
    frame.isObject = isObject
    frame.isInOrder = true
    frame.membersFrom = this.#members.count
    frame.innerFrom = this.disorders.count
    this.#frame = frame
    if (isObject) this.#emitName()
    return false
  }

  #frameAt(depth: number): Frame {
    if (depth === this.#frames.length) this.#frames.push(newFrame())
    return this.#frames[depth] as Frame
  }

  // Moves on behind a value; answers whether another value follows.
  #advance(): boolean {
    while (this.#depth > 0) {
      const { isObject } = this.#frame
      const byte = this.#skipSpace()
      if (isObject) this.#members.end(this.#pass.outAt, this.disorders.count)
      if (byte === comma) {
        this.#copy(byte)
        if (isObject) this.#emitName()
        return true
      }
      if (byte !== (isObject ? closeBrace : closeBracket)) throw unexpectedAt(this.#pass, this.#pass.at)
      this.#copy(byte)
      this.#close()
    }
    return false
  }

  #close(): void {
    const frame = this.#frame
    const { out, outAt } = this.#pass
    if (!frame.isInOrder) this.disorders.add(out, frame, outAt, this.#members)
    this.#members.count = frame.membersFrom
    this.#depth -= 1
    this.#frame = this.#frameAt(this.#depth)
  }

  // Writes the name of a member and the colon behind it.
  #emitName(): void {
    const pass = this.#pass
    const frame = this.#frame
    const members = this.#members
    if (this.#skipSpace() !== quote) throw unexpectedAt(pass, pass.at)
    const start = pass.outAt
    emitString(pass)
    const member = members.begin(pass.out, start, pass.outAt, this.disorders.count)
    if (this.#skipSpace() !== colon) throw unexpectedAt(pass, pass.at)
    this.#copy(colon)
    if (frame.isInOrder && member > frame.membersFrom) {
      frame.isInOrder = members.compare(pass.out, member - 1, member) <= 0
    }
  }
}

function newFrame(): Frame {
  return { start: 0, isObject: false, isInOrder: true, membersFrom: 0, innerFrom: 0 }
}
