// The structure of a document: one pass that checks the grammar of RFC 8259 and writes each token in canonical form.
//
// It keeps its own stack instead of calling itself, so depth costs no stack of the caller.

import { tooDeep } from './limits.js'
import { emitNumber } from './number.js'
import {
  type CompareNames,
  compareMembers,
  compareNames,
  comparePlainNames,
  Disorders,
  memberSize,
  namePrefix,
  withRoom,
} from './order.js'
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

// What is known of an array or object while it is open, at consecutive places of the stack.
const frameSize = 4

/** Reads documents, one after the other; keeps its arrays from one to the next. */
export class DocumentPass {
  /** The objects that are out of order, after a run. */
  readonly disorders: Disorders = new Disorders()
  readonly #pass: Pass
  #maxDepth = 0
  #compare: CompareNames = comparePlainNames
  // The members of all open objects, each in the form of memberSize.
  #members: Int32Array = new Int32Array(32 * memberSize)
  #memberTop = 0
  readonly #frames: number[] = []
  #depth = 0
  // The innermost open array or object.
  #start = 0
  #isObject = false
  #isInOrder = true
  #membersFrom = 0
  #innerFrom = 0

  constructor(pass: Pass) {
    this.#pass = pass
  }

  /** Writes the whole document in canonical form, but for the order of members. */
  run(maxDepth: number): void {
    this.#begin(maxDepth)
    do {
      while (!this.#emitValue());
    } while (this.#advance())
    this.#skipSpace()
    if (this.#pass.at < this.#pass.end) throw unexpectedAt(this.#pass, this.#pass.at)
  }

  #begin(maxDepth: number): void {
    this.disorders.clear()
    this.#maxDepth = maxDepth
    this.#compare = comparePlainNames
    this.#memberTop = 0
    this.#depth = 0
    this.#start = 0
    this.#isObject = false
    this.#isInOrder = true
    this.#membersFrom = 0
    this.#innerFrom = 0
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
    const frame = this.#depth * frameSize
    this.#frames[frame] = this.#start
    this.#frames[frame + 1] = (this.#isObject ? 1 : 0) + (this.#isInOrder ? 2 : 0)
    this.#frames[frame + 2] = this.#membersFrom
    this.#frames[frame + 3] = this.#innerFrom
    this.#depth += 1
    this.#start = start
    this.#isObject = isObject
    this.#isInOrder = true
    this.#membersFrom = this.#memberTop
    this.#innerFrom = this.disorders.count
    if (isObject) this.#emitName()
    return false
  }

  // Moves on behind a value; answers whether another value follows.
  #advance(): boolean {
    while (this.#depth > 0) {
      const byte = this.#skipSpace()
      if (this.#isObject) this.#endMember()
      if (byte === comma) {
        this.#copy(byte)
        if (this.#isObject) this.#emitName()
        return true
      }
      if (byte !== (this.#isObject ? closeBrace : closeBracket)) throw unexpectedAt(this.#pass, this.#pass.at)
      this.#copy(byte)
      this.#close()
    }
    return false
  }

  #close(): void {
    if (!this.#isInOrder) {
      const { out, outAt } = this.#pass
      const members = this.#members
      this.disorders.add(
        out,
        this.#start,
        outAt,
        this.#innerFrom,
        members,
        this.#membersFrom,
        this.#memberTop,
        this.#compare,
      )
    }
    this.#memberTop = this.#membersFrom
    this.#depth -= 1
    const frame = this.#depth * frameSize
    const flags = this.#frames[frame + 1] as number
    this.#start = this.#frames[frame] as number
    this.#isObject = (flags & 1) === 1
    this.#isInOrder = flags > 1
    this.#membersFrom = this.#frames[frame + 2] as number
    this.#innerFrom = this.#frames[frame + 3] as number
  }

  // Writes the name of a member and the colon behind it.
  #emitName(): void {
    const pass = this.#pass
    const start = pass.outAt
    if (this.#skipSpace() !== quote) throw unexpectedAt(pass, pass.at)
    pass.escaped = false
    emitString(pass)
    // Escapes are rare in names; from the first one on, names are compared by what they stand for.
    if (pass.escaped) this.#compare = compareNames
    const nameEnd = pass.outAt - 1
    if (this.#skipSpace() !== colon) throw unexpectedAt(pass, pass.at)
    this.#copy(colon)

    const member = this.#memberTop
    this.#members = withRoom(this.#members, member + memberSize)
    const members = this.#members
    members[member] = start
    members[member + 1] = nameEnd
    members[member + 2] = namePrefix(pass.out, start + 1, nameEnd)
    members[member + 3] = 0
    members[member + 4] = this.disorders.count
    members[member + 5] = 0
    this.#memberTop = member + memberSize
    if (this.#isInOrder && member > this.#membersFrom) {
      this.#isInOrder = compareMembers(pass.out, members, member - memberSize, member, this.#compare) <= 0
    }
  }

  #endMember(): void {
    const member = this.#memberTop - memberSize
    this.#members[member + 3] = this.#pass.outAt
    this.#members[member + 5] = this.disorders.count
  }
}
