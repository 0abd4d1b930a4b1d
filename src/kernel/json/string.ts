// Strings: RFC 8785 section 3.2.2.2. Only the quote, the backslash and the controls are escaped, in their shortest form.

import { encodingAt, faultAt, type Pass, sequenceLength, unexpectedAt } from './pass.js'

const quote = 0x22
const slash = 0x2f
const backslash = 0x5c
const letterU = 0x75

// 1 for every byte that a string holds as it is: ASCII but the controls, the quote and the backslash.
const plain = new Uint8Array(256)
plain.fill(1, 0x20, 0x80)
plain[quote] = 0
plain[backslash] = 0

// The letter of the two-character escape of a control, or 0; and 1 for what may follow a backslash and stays as it is.
const shortEscape = new Uint8Array(0x20)
const staysEscaped = new Uint8Array(256)
for (const [control, letter] of [
  [0x08, 'b'],
  [0x09, 't'],
  [0x0a, 'n'],
  [0x0c, 'f'],
  [0x0d, 'r'],
] as const) {
  shortEscape[control] = letter.charCodeAt(0)
  staysEscaped[letter.charCodeAt(0)] = 1
}
staysEscaped[quote] = 1
staysEscaped[backslash] = 1

// The value of a hexadecimal digit, or -1.
const hexadecimal = new Int8Array(256).fill(-1)
for (let value = 0; value < 16; value++) {
  hexadecimal[value.toString(16).charCodeAt(0)] = value
  hexadecimal[value.toString(16).toUpperCase().charCodeAt(0)] = value
}
const hexadecimalDigits = '0123456789abcdef'

/** Writes the string whose opening quote is the next byte. */
export function emitString(pass: Pass): void {
  const { source, out } = pass
  let at = pass.at + 1
  let outAt = pass.outAt
  out[outAt++] = quote
  for (;;) {
    const byte = source[at] as number
    if (plain[byte] === 1) {
      out[outAt++] = byte
      at += 1
    } else if (byte === quote) {
      break
    } else if (byte >= 0x80) {
      const length = sequenceLength(source, at)
      if (length === 0) throw encodingAt(pass, at)
      for (const until = at + length; at < until; at++) out[outAt++] = source[at] as number
    } else if (byte === backslash) {
      pass.at = at
      pass.outAt = outAt
      emitEscape(pass)
      at = pass.at
      outAt = pass.outAt
    } else {
      throw unexpectedAt(pass, at)
    }
  }
  out[outAt++] = quote
  pass.at = at + 1
  pass.outAt = outAt
}

function emitEscape(pass: Pass): void {
  const { source, out, at } = pass
  const letter = source[at + 1] as number
  if (letter === letterU) {
    emitCodePoint(pass)
    return
  }
  if (letter === slash) {
    out[pass.outAt++] = slash
  } else if (staysEscaped[letter] === 1) {
    out[pass.outAt++] = backslash
    out[pass.outAt++] = letter
  } else {
    throw unexpectedAt(pass, at + 1)
  }
  pass.at = at + 2
}

function emitCodePoint(pass: Pass): void {
  const { at } = pass
  const unit = readUnit(pass, at)
  pass.at = at + 6
  if (unit < 0xd800 || unit > 0xdfff) {
    writeCodePoint(pass, unit)
    return
  }
  const hasSecond = pass.source[at + 6] === backslash && pass.source[at + 7] === letterU
  if (unit > 0xdbff || !hasSecond) throw loneSurrogateAt(pass, at)
  const second = readUnit(pass, at + 6)
  if (second < 0xdc00 || second > 0xdfff) throw loneSurrogateAt(pass, at)
  pass.at = at + 12
  writeCodePoint(pass, 0x10000 + ((unit - 0xd800) << 10) + (second - 0xdc00))
}

function loneSurrogateAt(pass: Pass, at: number): Error {
  return faultAt(pass, 'JSON_LONE_SURROGATE', 'A string holds half of a surrogate pair', at)
}

// The UTF-16 code unit of the \uXXXX that starts here.
function readUnit(pass: Pass, escapeAt: number): number {
  let unit = 0
  for (let at = escapeAt + 2; at < escapeAt + 6; at++) {
    const digit = hexadecimal[pass.source[at] as number] as number
    if (digit < 0) throw unexpectedAt(pass, at)
    unit = unit * 16 + digit
  }
  return unit
}

function writeCodePoint(pass: Pass, codePoint: number): void {
  const { out } = pass
  if (codePoint < 0x20) {
    writeControl(pass, codePoint)
    return
  }
  if (codePoint === quote || codePoint === backslash) {
    out[pass.outAt++] = backslash
  }
  if (codePoint < 0x80) {
    out[pass.outAt++] = codePoint
    return
  }
  if (codePoint < 0x800) {
    out[pass.outAt++] = 0xc0 | (codePoint >> 6)
  } else {
    if (codePoint < 0x10000) {
      out[pass.outAt++] = 0xe0 | (codePoint >> 12)
    } else {
      out[pass.outAt++] = 0xf0 | (codePoint >> 18)
      out[pass.outAt++] = 0x80 | ((codePoint >> 12) & 0x3f)
    }
    out[pass.outAt++] = 0x80 | ((codePoint >> 6) & 0x3f)
  }
  out[pass.outAt++] = 0x80 | (codePoint & 0x3f)
}

function writeControl(pass: Pass, control: number): void {
  const letter = shortEscape[control] as number
  const text =
    letter === 0 ? `\\u00${control >> 4}${hexadecimalDigits[control & 15]}` : `\\${String.fromCharCode(letter)}`
  for (let index = 0; index < text.length; index++) pass.out[pass.outAt++] = text.charCodeAt(index)
}
