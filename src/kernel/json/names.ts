// The order of names: by their UTF-16 code units (RFC 8785 section 3.2.3), told from the canonical text without decoding it.
//
// Canonical text spells each character in one way only. Names are therefore equal as far as their bytes are, escapes
// included, and only the first difference has to be understood.

const backslash = 0x5c
const letterU = 0x75

// Bytes of UTF-8 sort by code point. UTF-16 does too, except that U+10000 and above (lead bytes from 0xf0 on) are written
// with surrogates, which come before U+E000 to U+FFFF (lead bytes 0xee and 0xef). The weights of bytes sort as UTF-16.
const weights = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte < 0xee) return byte
  return byte >= 0xf0 ? byte - 2 : byte + 0x10
})

// What the letter behind a backslash stands for: most stand for themselves.
const escapes = Uint8Array.from({ length: 256 }, (_, letter) => letter)
for (const [letter, control] of Object.entries({ b: 0x08, t: 0x09, n: 0x0a, f: 0x0c, r: 0x0d })) {
  escapes[letter.charCodeAt(0)] = control
}

/** Compares two names, given as places of canonical text between the quotes: negative where the left one comes first. */
export function compareNames(text: Uint8Array, left: number, leftEnd: number, right: number, rightEnd: number): number {
  const distance = right - left
  const sharedEnd = Math.min(leftEnd, rightEnd - distance)
  for (let at = left; at < sharedEnd; at++) {
    const byte = text[at] as number
    if (byte !== text[at + distance]) return weightAt(text, at) - weightAt(text, at + distance)
    if (byte === backslash) {
      // The letter means something only together with its backslash. Behind \u it is simpler: the digits of
      // hexadecimal numbers, in lower case, sort as bytes like any others.
      at += 1
      if (text[at] !== text[at + distance]) return weightAt(text, at - 1) - weightAt(text, at + distance - 1)
    }
  }
  return leftEnd + distance - rightEnd
}

/**
 * The weights of a name's first four bytes (of UTF-8, without escapes) as one 32-bit integer. Names whose prefixes differ
 * sort as the prefixes do. A shorter name is filled up with zeros, so equal prefixes say nothing: U+0000 is a zero as well.
 */
export function namePrefix(text: Uint8Array, start: number, end: number): number {
  let prefix = 0
  let at = start
  for (let index = 0; index < 4; index++) {
    const byte = at < end ? (text[at] as number) : 0
    if (byte === backslash) {
      prefix = (prefix << 8) | escapeWeight(text, at)
      at += escapeLength(text, at)
    } else {
      prefix = (prefix << 8) | (weights[byte] as number)
      at += 1
    }
  }
  // The highest bit is the sign of the integer, which would put the greatest names first.
  return prefix ^ -0x80000000
}

// The weight of the byte or escape here.
function weightAt(text: Uint8Array, at: number): number {
  const byte = text[at] as number
  return byte === backslash ? escapeWeight(text, at) : (weights[byte] as number)
}

// Only controls are written as \u00XX.
function escapeWeight(text: Uint8Array, at: number): number {
  const letter = text[at + 1] as number
  if (letter !== letterU) return escapes[letter] as number
  return digitValue(text[at + 4] as number) * 16 + digitValue(text[at + 5] as number)
}

function escapeLength(text: Uint8Array, at: number): number {
  return text[at + 1] === letterU ? 6 : 2
}

// Of a hexadecimal digit in lower case.
function digitValue(digit: number): number {
  return digit < 0x61 ? digit - 0x30 : digit - 0x61 + 10
}
