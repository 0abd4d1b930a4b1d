// What is fuzzed: every function that reads text from outside, each with a way to draw nasty input for it.
// `draw` starts from something well-formed and spoils it, so that the deeper branches are reached too.

import * as identity from 'reprise/identity'
import * as kernel from 'reprise/kernel'

/**
 * @typedef {import('reprise/kernel').Random} Random
 * @typedef {{ name: string, draw: (random: Random) => unknown, parse: (input: any) => unknown }} Subject
 */

/** @param {Random} random @param {number} below */
const nat = (random, below) => Math.floor(random.next() * below)
/** @template T @param {Random} random @param {readonly T[]} list @returns {T} */
const pick = (random, list) => /** @type {T} */ (list[nat(random, list.length)])
/** @param {Random} random @param {number} most @param {(random: Random) => string} piece */
const several = (random, most, piece) => Array.from({ length: nat(random, most + 1) }, () => piece(random)).join('')

const oddities = [
  '\u0000',
  '\t',
  '\u007f',
  'é',
  '\ud800',
  '\udfff',
  '😀',
  '\ufeff',
  '\u2028',
  '９',
  '"',
  '\\',
  ',',
  ';',
  '%',
  '~',
]
/** @param {Random} random */
const character = (random) =>
  random.next() < 0.8 ? String.fromCharCode(0x20 + nat(random, 0x5f)) : pick(random, oddities)
/** @param {Random} random @param {number} most */
const text = (random, most) => several(random, most, character)

/** Deletes, doubles, swaps or inserts a little. @param {Random} random @param {string} source */
function spoil(random, source) {
  let spoiled = source
  for (let left = nat(random, 4); left > 0; left--) {
    const at = nat(random, spoiled.length + 1)
    const length = nat(random, 4)
    const middle = pick(random, ['', character(random), spoiled.slice(at, at + 8), text(random, 4)])
    spoiled = spoiled.slice(0, at) + middle + spoiled.slice(at + length)
  }
  return spoiled
}

/** @param {Random} random */
function number(random) {
  const digits = (/** @type {number} */ most) => several(random, most, () => String(nat(random, 10)))
  const sign = pick(random, ['', '-', '+'])
  const fraction = pick(random, ['', '', `.${digits(20)}`])
  const exponent = pick(random, ['', '', `e${pick(random, ['', '-', '+'])}${digits(4)}`, `E${digits(20)}`])
  return `${sign}${digits(25)}${fraction}${exponent}`
}

/** @param {Random} random @param {number} depth @returns {string} */
function json(random, depth) {
  const space = () => (random.next() < 0.2 ? pick(random, [' ', '\n', '\t', '\r\n']) : '')
  const string = () =>
    `"${several(random, 6, () => pick(random, [character(random), '\\n', '\\u0041', '\\ud83d\\ude00', '\\udc00', '\\/', '\\u00', '\\x']))}"`
  const kind = depth > 6 ? 0 : random.next()
  if (kind < 0.25) return number(random)
  if (kind < 0.45) return string()
  if (kind < 0.55) return pick(random, ['true', 'false', 'null', 'nul', 'NaN', 'undefined', ''])
  const children = Array.from({ length: nat(random, 4) }, () => {
    const label = kind < 0.8 ? '' : `${pick(random, ['"a"', '"__proto__"', string()])}${space()}:`
    return `${space()}${label}${space()}${json(random, depth + 1)}${space()}`
  })
  return kind < 0.8 ? `[${children.join(',')}]` : `{${children.join(',')}}`
}

/** @param {Random} random */
function nested(random) {
  const depth = nat(random, 400)
  return (
    pick(random, ['[', '{"a":', '[[],']).repeat(depth) +
    pick(random, ['', '1']) +
    pick(random, [']', '}']).repeat(depth)
  )
}

/** @param {Random} random */
const document = (random) => spoil(random, random.next() < 0.02 ? nested(random) : json(random, 0))

/** @param {Random} random */
function bytes(random) {
  const encoded = new TextEncoder().encode(document(random))
  for (let left = nat(random, 3); left > 0 && encoded.length > 0; left--) {
    encoded[nat(random, encoded.length)] = nat(random, 256)
  }
  return encoded
}

const dates = ['Sun, 06 Nov 1994 08:49:37 GMT', 'Sunday, 06-Nov-94 08:49:37 GMT', 'Sun Nov  6 08:49:37 1994']
const fields = ['"k"', '"k";a=1;b="x";c=?1;d=:aGk=:;e=@1;f=%"a%20"', 'k', '"a\\"b"', '"a", "b"', 'true', 'caller', '12']
const durations = ['2s', '1.5h', '500ms', '7d', '0m', '1e3s', '-1s', ' 2s']
const fingerprints = [
  `json1-sha256:${'A'.repeat(43)}`,
  `json1-sha256;omit=%2Fa,%2Fb:${'A'.repeat(43)}`,
  `bytes-sha256:${'A'.repeat(43)}`,
]
/** @param {readonly string[]} seeds @returns {(random: Random) => string} */
const around = (seeds) => (random) => (random.next() < 0.9 ? spoil(random, pick(random, seeds)) : text(random, 300))

/** @param {Random} random */
const field = (random) => {
  const one = around([...fields, ...dates])
  return random.next() < 0.9 ? one(random) : Array.from({ length: nat(random, 3) }, () => one(random))
}

/** @type {readonly Subject[]} */
export const subjects = [
  { name: 'canonicalJson of text', draw: document, parse: (input) => kernel.canonicalJson(input) },
  { name: 'canonicalJson of bytes', draw: bytes, parse: (input) => kernel.canonicalJson(input) },
  { name: 'durationMs', draw: around(durations), parse: (input) => kernel.durationMs(input) },
  { name: 'parseDigest', draw: around([`sha256:${'A'.repeat(43)}`]), parse: (input) => kernel.parseDigest(input) },
  { name: 'uuidv7TimeMs', draw: around([kernel.uuidv7()]), parse: (input) => kernel.uuidv7TimeMs(input) },
  {
    name: 'parseKey',
    draw: around(['8e03978e-40d5-43e8-bc93-6894a57f9324']),
    parse: (input) => identity.parseKey(input),
  },
  { name: 'parseKeyField', draw: field, parse: (input) => identity.parseKeyField(input) },
  {
    name: 'parseKeyField, strict',
    draw: field,
    parse: (input) => identity.parseKeyField(input, { form: 'quoted', parameters: 'refuse', minLength: 2 }),
  },
  { name: 'Retry-After', draw: field, parse: (input) => identity.retryAfterHeader.read(input, 1_763_200_000_000) },
  {
    name: 'our own headers',
    draw: field,
    parse: (input) => {
      identity.attemptHeader.read(input)
      identity.deadlineHeader.read(input)
      identity.replayedHeader.read(input)
      identity.retryOwnerHeader.read(input)
    },
  },
  {
    name: 'stored fingerprint',
    draw: around(fingerprints),
    parse: (input) => identity.sameContent(input, { json: '{"a":{"b":1}}' }),
  },
  {
    name: 'fingerprint fields',
    draw: (random) => [around(['/a', '/a/b', '/e~0f~1g/0'])(random)],
    parse: (input) => identity.fingerprint({ json: '{"a":{"b":[1,2]},"e~f/g":[0]}' }, { omit: input }),
  },
]

/** Broken on purpose, to show that the fuzzer would notice: each appears only when asked for by `--plant`. */
/** @type {Readonly<Record<string, Subject>>} */
export const planted = {
  crash: { name: 'planted crash', draw: nested, parse: (input) => (input.length > 600 ? input.at(-1).missing() : 0) },
  hang: {
    name: 'planted hang',
    draw: nested,
    parse: (input) => {
      while (input.length > 600);
    },
  },
}
