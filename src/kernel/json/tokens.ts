// Strings and numbers in canonical form: each function reads the token that starts with the next byte, and writes it.
//
// Strings: RFC 8785 section 3.2.2.2. Only the quote, the backslash and the controls are escaped, in their shortest
// form.
//
// Numbers: the digits of the source, laid out as ECMAScript lays out a number (ECMA-262, Number::toString with radix
// 10). RFC 8785 section 3.2.2.3 takes the double nearest to the source, its shortest digits, and this layout. Wherever
// that text denotes the value of the source, the shortest digits are the source's own, so laying those out gives the
// same text without a double in between; and where it denotes another value, no digit is lost. A text therefore stands
// for exactly one decimal value, and a value has exactly one text.

import { encodingAt, faultAt, type Pass, reserve, sequenceLength, unexpectedAt } from './pass.js'

const quote = 0x22
const plus = 0x2b
const minus = 0x2d
const point = 0x2e
const slash = 0x2f
const zero = 0x30
const nine = 0x39
const backslash = 0x5c
const letterE = 0x65
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

// Number::toString writes out integers below 10^21 and fractions from 10^-6, and uses an exponent beyond.
const mostIntegerDigits = 21
const mostLeadingZeros = 5
// Exponents stay exact integers, whatever the digits before them add.
const largestExponent = 999_999_999_999_999
const mostExponentDigits = 15
// More than a layout adds to its digits: a sign, a point, and 21 zeros or an exponent.
const mostExtra = 32

/** Writes the number that starts with the next byte. */
export function emitNumber(pass: Pass): void {
  const { source } = pass
  const start = pass.at
  const integerAt = source[start] === minus ? start + 1 : start
  const integerEnd = source[integerAt] === zero ? integerAt + 1 : skipDigits(pass, integerAt)
  const fractionEnd = source[integerEnd] === point ? skipDigits(pass, integerEnd + 1) : integerEnd
  if (((source[fractionEnd] as number) | 0x20) === letterE) {
    const exponent = readExponent(pass, fractionEnd + 1)
    emitDecimal(pass, start, integerEnd, fractionEnd, exponent)
    return
  }
  pass.at = fractionEnd

  // Most numbers differ from their canonical text by trailing zeros of the fraction at most.
  let end = fractionEnd
  if (end > integerEnd) {
    while (source[end - 1] === zero) end -= 1
    if (source[end - 1] === point) end -= 1
  }
  const startsWithZero = source[integerAt] === zero
  const isLarge = integerEnd - integerAt > mostIntegerDigits
  const isSmall = startsWithZero && end > integerEnd && leadingZeros(source, integerEnd) > mostLeadingZeros
  if (isLarge || isSmall) {
    emitDecimal(pass, start, integerEnd, fractionEnd, 0)
  } else {
    const isZero = startsWithZero && end === integerEnd
    const { out } = pass
    let outAt = pass.outAt
    for (let at = isZero ? integerAt : start; at < end; at++) out[outAt++] = source[at] as number
    pass.outAt = outAt
  }
}

function skipDigits(pass: Pass, from: number): number {
  const { source } = pass
  let at = from
  for (let byte = source[at] as number; byte >= zero && byte <= nine; byte = source[at] as number) at += 1
  if (at === from) throw unexpectedAt(pass, at)
  return at
}

function leadingZeros(source: Uint8Array, pointAt: number): number {
  let at = pointAt + 1
  while (source[at] === zero) at += 1
  return at - pointAt - 1
}

// The exponent behind its letter, and moves to the end of the number. Infinite where it has too many digits.
function readExponent(pass: Pass, from: number): number {
  const { source } = pass
  const isNegative = source[from] === minus
  let at = isNegative || source[from] === plus ? from + 1 : from
  const end = skipDigits(pass, at)
  pass.at = end
  while (at < end && source[at] === zero) at += 1
  let exponent = 0
  if (end - at > mostExponentDigits + 1) exponent = Number.POSITIVE_INFINITY
  else for (; at < end; at++) exponent = exponent * 10 + ((source[at] as number) - zero)
  return isNegative ? -exponent : exponent
}

// Lays out the digits d1 d2 … dk, the value being 0.d1d2…dk × 10^magnitude (the k and n of Number::toString).
function emitDecimal(pass: Pass, start: number, integerEnd: number, fractionEnd: number, exponent: number): void {
  const { source } = pass
  const isNegative = source[start] === minus
  let first = isNegative ? start + 1 : start
  while (first < fractionEnd && (source[first] === zero || source[first] === point)) first += 1
  if (first === fractionEnd) {
    pass.out[pass.outAt++] = zero
    return
  }
  let end = fractionEnd
  while (source[end - 1] === zero || source[end - 1] === point) end -= 1
  const hasPointInside = first < integerEnd && end > integerEnd
  const count = end - first - (hasPointInside ? 1 : 0)
  const magnitude = (first < integerEnd ? integerEnd - first : integerEnd + 1 - first) + exponent
  if (!(Math.abs(magnitude - 1) <= largestExponent)) {
    throw faultAt(pass, 'JSON_NUMBER_RANGE', 'The exponent of a number is too large to be normalised', start)
  }
  reserve(pass, count + mostExtra)
  if (isNegative) pass.out[pass.outAt++] = minus
  layOut(pass, first, count, magnitude)
}

function layOut(pass: Pass, first: number, count: number, magnitude: number): void {
  if (magnitude > 0 && magnitude <= mostIntegerDigits) {
    const inInteger = Math.min(count, magnitude)
    const next = writeDigits(pass, first, inInteger)
    for (let index = count; index < magnitude; index++) pass.out[pass.outAt++] = zero
    if (inInteger === count) return
    pass.out[pass.outAt++] = point
    writeDigits(pass, next, count - inInteger)
  } else if (magnitude <= 0 && magnitude >= -mostLeadingZeros) {
    pass.out[pass.outAt++] = zero
    pass.out[pass.outAt++] = point
    for (let index = magnitude; index < 0; index++) pass.out[pass.outAt++] = zero
    writeDigits(pass, first, count)
  } else {
    const next = writeDigits(pass, first, 1)
    if (count > 1) pass.out[pass.outAt++] = point
    writeDigits(pass, next, count - 1)
    writeText(pass, magnitude > 0 ? `e+${magnitude - 1}` : `e${magnitude - 1}`)
  }
}

// Copies digits, skipping the point among them; answers where the next one is.
function writeDigits(pass: Pass, from: number, count: number): number {
  const { source, out } = pass
  let at = from
  let outAt = pass.outAt
  for (const until = outAt + count; outAt < until; at++) {
    if (source[at] !== point) out[outAt++] = source[at] as number
  }
  pass.outAt = outAt
  return at
}

function writeText(pass: Pass, text: string): void {
  for (let index = 0; index < text.length; index++) pass.out[pass.outAt++] = text.charCodeAt(index)
}
