// Canonical JSON against models that share no code with it: JSON.parse where that loses nothing, exact decimals
// elsewhere.

import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { decimal } from '../../../test/exact-decimal.js'
import { property } from '../../../test/property.js'
import { isRepriseError, type RepriseError } from '../errors.js'
import { canonicalJson } from './index.js'

// A document as a tree that keeps what JSON.parse would lose: digits, and duplicate members.
type Tree =
  | { readonly kind: 'literal'; readonly text: 'null' | 'true' | 'false' }
  | { readonly kind: 'number'; readonly negative: boolean; readonly digits: bigint; readonly exponent: number }
  | { readonly kind: 'string'; readonly text: string }
  | { readonly kind: 'array'; readonly elements: readonly Tree[] }
  | { readonly kind: 'object'; readonly members: readonly (readonly [string, Tree])[] }

// Few different characters, so that names often meet, and every kind of escape and every length of UTF-8 among them.
const character = fc.constantFrom(...'abé€ \n\u0000\u001f\u007f"\\/u0\ud7ff\ue000\uffff', '😀', '\u{10ffff}')
const text = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: character, maxLength: 4 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 12 }) },
  { weight: 1, arbitrary: fc.constantFrom('__proto__', 'constructor', 'toJSON') },
)
const number = fc.record({
  kind: fc.constant('number' as const),
  negative: fc.boolean(),
  digits: fc.oneof(
    fc.bigInt(0n, 120n),
    fc.bigInt(0n, 10n ** 25n),
    fc.bigInt(2n ** 53n - 4n, 2n ** 53n + 4n),
    fc.bigInt(10n ** 17n - 2n, 10n ** 17n + 2n),
  ),
  exponent: fc.oneof(
    fc.integer({ min: -3, max: 3 }),
    fc.integer({ min: -40, max: 40 }),
    fc.integer({ min: -400, max: 400 }),
  ),
})
const { tree } = fc.letrec<{ tree: Tree; leaf: Tree }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    { weight: 2, arbitrary: tie('leaf') },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('array' as const), elements: fc.array(tie('tree'), { maxLength: 4 }) }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant('object' as const),
        members: fc.array(fc.tuple(text, tie('tree')), { maxLength: 5 }),
      }),
    },
  ),
  leaf: fc.oneof(
    fc.record({
      kind: fc.constant('literal' as const),
      text: fc.constantFrom('null' as const, 'true' as const, 'false' as const),
    }),
    fc.record({ kind: fc.constant('string' as const), text }),
    number,
  ),
}))

// A stream of small choices, with which one tree is printed in many ways.
type Choose = (limit: number) => number
const choices = fc.array(fc.nat(1_000), { minLength: 8, maxLength: 64 })

function chooser(numbers: readonly number[]): Choose {
  let used = 0
  return (limit) => ((numbers[used++ % numbers.length] as number) + used) % limit
}

function print(node: Tree, choose: Choose): string {
  const space = () => [' ', '\n', '\t', '\r', ' \n  ', '', '', ''][choose(8)] as string
  const list = (open: string, parts: readonly string[], close: string) =>
    `${open}${parts.length === 0 ? space() : parts.map((part) => `${space()}${part}${space()}`).join(',')}${close}`
  switch (node.kind) {
    case 'literal':
      return node.text
    case 'number':
      return printNumber(node, choose)
    case 'string':
      return printString(node.text, choose)
    case 'array':
      return list(
        '[',
        node.elements.map((element) => print(element, choose)),
        ']',
      )
    case 'object': {
      const parts = shuffled(node.members, choose).map(
        ([name, value]) => `${printString(name, choose)}${space()}:${space()}${print(value, choose)}`,
      )
      return list('{', parts, '}')
    }
  }
}

// Another order of members that keeps the order of those with equal names.
function shuffled(members: readonly (readonly [string, Tree])[], choose: Choose): (readonly [string, Tree])[] {
  const names = members.map(([name]) => name)
  for (let index = names.length - 1; index > 0; index--) {
    const other = choose(index + 1)
    const name = names[index] as string
    names[index] = names[other] as string
    names[other] = name
  }
  const left = [...members]
  return names.map(
    (name) =>
      left.splice(
        left.findIndex((member) => member[0] === name),
        1,
      )[0] as readonly [string, Tree],
  )
}

function printString(value: string, choose: Choose): string {
  const shorts: Record<string, string> = {
    '"': '"',
    '\\': '\\',
    '/': '/',
    '\b': 'b',
    '\t': 't',
    '\n': 'n',
    '\f': 'f',
    '\r': 'r',
  }
  let out = '"'
  for (let index = 0; index < value.length; index++) {
    const unit = value[index] as string
    const isSurrogate = unit >= '\ud800' && unit <= '\udfff'
    const hexadecimal = unit.charCodeAt(0).toString(16).padStart(4, '0')
    const way = choose(4)
    // A pair is written as two escapes or not at all: half of one would be alone in the text.
    if (isSurrogate) {
      const pair = value.slice(index, index + 2)
      out += way < 2 ? pair : `\\u${hexadecimal.toUpperCase()}\\u${pair.charCodeAt(1).toString(16)}`
      index += 1
    } else if (way === 0) out += `\\u${hexadecimal}`
    else if (way === 1) out += `\\u${hexadecimal.toUpperCase()}`
    else if (way === 2 && unit in shorts) out += `\\${shorts[unit]}`
    else out += unit < ' ' || unit === '"' || unit === '\\' ? `\\u${hexadecimal}` : unit
  }
  return `${out}"`
}

function printNumber({ negative, digits, exponent }: Tree & { kind: 'number' }, choose: Choose): string {
  // Zeros added at the end of the digits are taken off the exponent.
  const added = choose(3)
  const all = digits.toString() + '0'.repeat(added)
  const power = exponent - added
  const sign = negative ? '-' : ''
  const mark = () => `${'eE'[choose(2)]}`
  const signed = (value: number) =>
    `${value < 0 ? '-' : ['', '+'][choose(2)]}${'0'.repeat(choose(3))}${Math.abs(value)}`
  const way = choose(4)
  if (way === 0 && power >= 0 && power < 60) return `${sign}${digits === 0n ? '0' : all + '0'.repeat(power)}`
  if (way <= 1 && power < 0 && power > -60) {
    const padded = all.padStart(-power + 1, '0')
    const integer = padded.slice(0, power).replace(/^0+(?=\d)/, '')
    return `${sign}${integer}.${padded.slice(power)}`
  }
  const head = all.slice(0, 1)
  const rest = all.slice(1)
  if (way === 2 && rest !== '') return `${sign}${head}.${rest}${mark()}${signed(power + rest.length)}`
  if (way === 3) return `${sign}0.${all}${mark()}${signed(power + all.length)}`
  return `${sign}${digits === 0n ? '0' : all}${mark()}${signed(power)}`
}

// What a tree means, as text: equal for equal meaning, and only then. Numbers as exact integers times powers of ten.
function meaning(node: Tree): string {
  switch (node.kind) {
    case 'literal':
      return node.text
    case 'number':
      return decimal(node.negative, node.digits, node.exponent)
    case 'string':
      return codeUnits(node.text)
    case 'array':
      return `[${node.elements.map(meaning).join()}]`
    case 'object': {
      const members = node.members.map(([name, value], index) => ({ name, index, value }))
      members.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.index - b.index))
      return `{${members.map(({ name, value }) => `${codeUnits(name)}=${meaning(value)}`).join()}}`
    }
  }
}

function codeUnits(value: string): string {
  return `<${Array.from({ length: value.length }, (_, index) => value.charCodeAt(index)).join('.')}>`
}

// JSON.parse of V8 in Node 24.21 and 26.10 can give a member that is written with an escape the name of a member of an
// earlier document. Where the engine has that fault, it is no judge of documents with escapes.
const parseConfusesNames = (() => {
  JSON.parse('{"":1,"\\\\":1}')
  return !Object.hasOwn(JSON.parse('{"":1,"\\u0061":null}') as object, 'a')
})()
const isJudged = (source: string): boolean => !(parseConfusesNames && source.includes('\\'))

// What JSON.parse makes of a text, as text: members sorted, and no difference between 0 and -0.
function parsed(source: string): string {
  const sorted = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(sorted)
    if (typeof value !== 'object' || value === null) return typeof value === 'number' ? String(value + 0) : [value]
    return Object.keys(value)
      .sort()
      .map((name) => [name, sorted(Reflect.get(value, name))])
  }
  return JSON.stringify(sorted(JSON.parse(source)))
}

function outcome(source: string | Uint8Array): string | RepriseError {
  try {
    return canonicalJson(source)
  } catch (error) {
    if (isRepriseError(error)) return error
    throw error
  }
}

const bytes = (source: string) => new TextEncoder().encode(source)

describe('canonical JSON', () => {
  property(
    'means what its source means to JSON.parse, and is its own canonical text',
    [tree, choices],
    (node, numbers) => {
      const source = print(node, chooser(numbers))
      const canonical = canonicalJson(source)
      if (isJudged(source)) expect(parsed(canonical)).toBe(parsed(source))
      expect(canonicalJson(canonical)).toBe(canonical)
      expect(canonicalJson(bytes(source))).toBe(canonical)
    },
  )

  property(
    'does not depend on white space, order, escapes or spelling',
    [tree, choices, choices],
    (node, one, other) => {
      expect(canonicalJson(print(node, chooser(one)))).toBe(canonicalJson(print(node, chooser(other))))
    },
  )

  property(
    'is the same for two documents exactly when they mean the same',
    [tree, tree, choices],
    (one, other, numbers) => {
      const choose = chooser(numbers)
      const isSame = canonicalJson(print(one, choose)) === canonicalJson(print(other, choose))
      expect(isSame).toBe(meaning(one) === meaning(other))
    },
  )

  property(
    'tells a document from a slightly different one',
    [tree, choices],
    (node, numbers) => {
      const choose = chooser(numbers)
      const other = changed(node, choose)
      const isSame = canonicalJson(print(node, choose)) === canonicalJson(print(other, choose))
      expect(isSame).toBe(meaning(node) === meaning(other))
    },
    { cases: 30_000 },
  )
})

// The tree with one small change somewhere. Now and then the change is none, such as swapping two equal members.
function changed(node: Tree, choose: Choose): Tree {
  switch (node.kind) {
    case 'literal':
      return { kind: 'string', text: node.text }
    case 'number': {
      const way = choose(4)
      if (way === 0) return { ...node, negative: !node.negative }
      if (way === 1) return { ...node, digits: node.digits + 1n }
      if (way === 2) return { ...node, exponent: node.exponent + 1 }
      return { ...node, digits: node.digits * 10n + BigInt(choose(10)), exponent: node.exponent - 1 }
    }
    case 'string':
      return { kind: 'string', text: changedText(node.text, choose) }
    case 'array': {
      if (node.elements.length === 0)
        return choose(2) === 0 ? { kind: 'object', members: [] } : { ...node, elements: [node] }
      return { ...node, elements: changedList(node.elements, choose, (element) => changed(element, choose)) }
    }
    case 'object': {
      if (node.members.length === 0)
        return choose(2) === 0 ? { kind: 'array', elements: [] } : { ...node, members: [['', node]] }
      const change = ([name, value]: readonly [string, Tree]) =>
        choose(2) === 0 ? ([changedText(name, choose), value] as const) : ([name, changed(value, choose)] as const)
      return { ...node, members: changedList(node.members, choose, change) }
    }
  }
}

function changedList<Item>(items: readonly Item[], choose: Choose, change: (item: Item) => Item): Item[] {
  const at = choose(items.length)
  const item = items[at] as Item
  const way = choose(5)
  if (way === 0) return items.toSpliced(at, 1)
  if (way === 1) return items.toSpliced(at, 0, item)
  if (way === 2) return [item, ...items.toSpliced(at, 1)]
  return items.toSpliced(at, 1, change(item))
}

function changedText(value: string, choose: Choose): string {
  const points = [...value]
  return points
    .toSpliced(
      choose(points.length + 1),
      choose(2),
      ['a', 'b', '\\', 'n', '\n', 'é', '😀', '\uffff'][choose(8)] as string,
    )
    .join('')
}

describe('the language', () => {
  const token = fc.constantFrom(
    ...'[]{}:,"\\ 0159-+.eEutrfn/\n\u0000\u001f\u007fé\ufeff\ufffd',
    '😀',
    'null',
    'true',
    '"a"',
    '\\u',
    'd800',
    '\ud800',
    '\udc00',
  )
  const edit = fc.record({ at: fc.nat(200), removed: fc.nat(2), added: fc.oneof(token, fc.constant('')) })
  const printed = fc.tuple(tree, choices).map(([node, numbers]) => print(node, chooser(numbers)))
  const edited = fc.tuple(printed, fc.array(edit, { minLength: 1, maxLength: 3 })).map(([source, edits]) =>
    edits.reduce((result, { at, removed, added }) => {
      const place = at % (result.length + 1)
      return result.slice(0, place) + added + result.slice(place + removed)
    }, source),
  )
  const tokens = fc.array(token, { maxLength: 12 }).map((parts) => parts.join(''))

  property(
    'is that of JSON.parse',
    [fc.oneof(edited, tokens)],
    (source) => {
      const result = outcome(source)
      if (typeof result === 'string') {
        if (isJudged(source)) expect(parsed(result)).toBe(parsed(source))
      } else if (result.code === 'JSON_SYNTAX') expect(() => JSON.parse(source)).toThrow(SyntaxError)
      else expect(['JSON_LONE_SURROGATE', 'JSON_NUMBER_RANGE']).toContain(result.code)
    },
    { cases: 50_000 },
  )

  property('is the same for text and bytes, faults and their places included', [fc.oneof(edited, tokens)], (source) => {
    if (/\p{Surrogate}/u.test(source)) return
    const ofText = outcome(source)
    const ofBytes = outcome(bytes(source))
    if (typeof ofText === 'string' || typeof ofBytes === 'string') {
      expect(ofBytes).toBe(ofText)
    } else {
      expect(ofBytes.code).toBe(ofText.code)
      expect(ofBytes.details['offset']).toBe(bytes(source.slice(0, ofText.details['offset'] as number)).length)
    }
  })

  property('accepts only UTF-8', [edited, fc.nat(200), fc.integer({ min: 0x80, max: 0xff })], (source, at, byte) => {
    const damaged = bytes(source)
    if (damaged.length === 0) return
    damaged[at % damaged.length] = byte
    const result = outcome(damaged)
    const decoded = () => JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(damaged))
    if (typeof result === 'string') expect(decoded).not.toThrow()
    else if (result.code === 'JSON_SYNTAX' || result.code === 'JSON_ENCODING') expect(decoded).toThrow()
  })

  property(
    'has no refusal that repeats its source',
    [printed, fc.nat(200), fc.constantFrom('sesame', '"sesame', 'sesame"', '"sesame\ud800"')],
    (source, at, secret) => {
      const place = at % (source.length + 1)
      const result = outcome(source.slice(0, place) + secret + source.slice(place))
      if (typeof result !== 'string') {
        expect(`${result.message}${result.stack}${JSON.stringify(result)}`).not.toContain('sesame')
      }
    },
  )
})
