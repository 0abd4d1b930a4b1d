// Numbers: the digits of the source, laid out as ECMAScript lays out a number (ECMA-262, Number::toString with radix 10).
//
// RFC 8785 section 3.2.2.3 takes the double nearest to the source, its shortest digits, and this layout. Wherever that
// text denotes the value of the source, the shortest digits are the source's own, so laying those out gives the same
// text without a double in between; and where it denotes another value, no digit is lost. A text therefore stands
// for exactly one decimal value, and a value has exactly one text.

import { faultAt, type Pass, reserve, unexpectedAt } from './pass.js'

const minus = 0x2d
const plus = 0x2b
const point = 0x2e
const zero = 0x30
const nine = 0x39
const letterE = 0x65

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
    copyTo(pass, isZero ? integerAt : start, end)
  }
}

function skipDigits(pass: Pass, from: number): number {
  const { source } = pass
  let at = from
  while (isDigit(source[at] as number)) at += 1
  if (at === from) throw unexpectedAt(pass, at)
  return at
}

function isDigit(byte: number): boolean {
  return byte >= zero && byte <= nine
}

function leadingZeros(source: Uint8Array, pointAt: number): number {
  let at = pointAt + 1
  while (source[at] === zero) at += 1
  return at - pointAt - 1
}

function copyTo(pass: Pass, from: number, end: number): void {
  const { source, out } = pass
  let outAt = pass.outAt
  for (let at = from; at < end; at++) out[outAt++] = source[at] as number
  pass.outAt = outAt
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
