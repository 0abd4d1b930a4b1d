import fc from 'fast-check'
import { expect, it } from 'vitest'
import { factsOf, type Sent } from '../../../../test/http/route-world.js'
import { property } from '../../../../test/property.js'
import { fingerprint } from '../../../identity/index.js'
import { contentRule, requestContent } from './content.js'
import { HttpRequest } from './http-request.js'

const printOf = ({ body = '', ...sent }: Sent, rule = {}): string => {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  return fingerprint(requestContent(new HttpRequest(factsOf({ ...sent, body }), bytes), bytes), contentRule(rule))
}
const jsonPrint = (body: string, rule = {}): string => printOf({ type: 'application/json', body }, rule)

// The same value, spelled differently: members in another order, other whitespace, other escapes.
const spelled = (value: unknown, seed: number): string => {
  const space = ['', ' ', '\n\t'][seed % 3] ?? ''
  if (Array.isArray(value)) return `[${space}${value.map((part) => spelled(part, seed + 1)).join(`,${space}`)}]`
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).map(
      ([name, part]) => `${quoted(name, seed)}${space}:${spelled(part, seed + 1)}`,
    )
    return `{${(seed % 2 === 0 ? members : members.reverse()).join(`${space},`)}}`
  }
  return typeof value === 'string' ? quoted(value, seed) : JSON.stringify(value)
}
const quoted = (text: string, seed: number): string =>
  seed % 2 === 0
    ? JSON.stringify(text)
    : JSON.stringify(text).replace(/[a-z]/g, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`)

property(
  'does not depend on the order of members, whitespace and escapes of a JSON body',
  [fc.jsonValue({ maxDepth: 3 }), fc.nat(), fc.nat()],
  (value, one, other) => {
    fc.pre(!JSON.stringify(value).includes('\\'))
    const [left, right] = [spelled(value, one), spelled(value, other)]
    expect(JSON.parse(left)).toEqual(JSON.parse(right))
    expect(jsonPrint(left)).toBe(jsonPrint(right))
  },
  { cases: 3_000 },
)

property(
  'tells different JSON values apart',
  [fc.jsonValue({ maxDepth: 3 }), fc.jsonValue({ maxDepth: 3 })],
  (one, other) => {
    const [left, right] = [JSON.stringify(sorted(one)), JSON.stringify(sorted(other))]
    expect(jsonPrint(JSON.stringify(one)) === jsonPrint(JSON.stringify(other))).toBe(left === right)
  },
  { cases: 5_000 },
)

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([member, inner]) => [member, sorted(inner)] as const)
  return { members: members.sort(([left], [right]) => (left < right ? -1 : 1)) }
}

it('keeps every digit, duplicate and __proto__ of a JSON body', () => {
  const different = [
    '{"a":9007199254740993}',
    '{"a":9007199254740992}',
    '{"a":1}',
    '{"a":1,"a":2}',
    '{"a":2,"a":1}',
    '{"a":2}',
    '{"__proto__":{"a":1}}',
    '{}',
    '{"A":1}',
    '{"a":1e400}',
    '{"a":1e401}',
    '[]',
    '""',
    'null',
    '{"a":0.1}',
    '{"a":0.10000000000000000000001}',
    '',
    '{',
    '{"a":1}}',
    '1,"json":2',
  ]
  expect(new Set(different.map((body) => jsonPrint(body))).size).toBe(different.length)
  expect(jsonPrint('{"a":1.0e1}')).toBe(jsonPrint('{"a":10}'))
})

it('takes any JSON body up to its limits by its meaning, however large or deep', () => {
  const large = (first: string, second: string) => `{${first},"text":"${'x'.repeat(3_000_000)}",${second}}`
  expect(jsonPrint(large('"a":1', '"b":2'))).toBe(jsonPrint(large('"b":2', '"a":1')))
  expect(jsonPrint(large('"a":1', '"b":2'))).not.toBe(jsonPrint(large('"a":1', '"b":3')))
  for (const size of [1_048_400, 1_048_500, 1_048_576 - 20, 1_048_576]) {
    const text = 'x'.repeat(size - 12)
    expect(jsonPrint(`{"t":"${text}","a":1}`)).toBe(jsonPrint(`{"a":1,"t":"${text}"}`))
  }
  for (const depth of [126, 127, 128, 129, 900, 2_000]) {
    const deep = (inner: string) => '['.repeat(depth - 1) + inner + ']'.repeat(depth - 1)
    expect(jsonPrint(deep('{"a":1,"b":2}')) === jsonPrint(deep('{"b":2,"a":1}'))).toBe(depth < 1_000)
    expect(jsonPrint(deep('{"a":1}'))).not.toBe(jsonPrint(deep('{"a":2}')))
  }
})

const name = fc.stringMatching(/^[a-z]{1,3}$/)
const value = fc.string({ maxLength: 5, unit: 'grapheme' })

property(
  'does not depend on the order of query pairs with different names, and on nothing else less',
  [fc.array(fc.tuple(name, value), { maxLength: 6 }), fc.array(fc.tuple(name, value), { maxLength: 6 }), fc.nat()],
  (pairs, others, seed) => {
    const printed = (list: readonly (readonly [string, string])[]) =>
      printOf({ target: `/a?${list.map((pair) => pair.map(encodeURIComponent).join('=')).join('&')}` })
    const names = [...new Set(pairs.map(([one]) => one))]
    const turned = [...names.slice(seed % (names.length + 1)), ...names.slice(0, seed % (names.length + 1))]
    const shuffled = turned.flatMap((one) => pairs.filter(([other]) => other === one))
    expect(printed(shuffled)).toBe(printed(pairs))
    const meaning = (list: typeof pairs) =>
      JSON.stringify([...list].sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0)))
    expect(printed(others) === printed(pairs)).toBe(meaning(others) === meaning(pairs))
  },
  { cases: 3_000 },
)

it('reads a query as forms do, and bytes that are no text as they are spelled', () => {
  const same = [
    ['a=1+2', 'a=1%202'],
    ['a', 'a='],
    ['a=1&&b=2', 'b=2&a=1'],
    ['', '&'],
  ] as const
  for (const [one, other] of same) expect(printOf({ target: `/a?${one}` })).toBe(printOf({ target: `/a?${other}` }))
  const different = [
    '',
    'a=%FF',
    'a=%FE',
    'a=%25FF',
    'a=%EF%BF%BD',
    '%FF=a',
    'a=1&a=2',
    'a=2&a=1',
    'a=1',
    'A=1',
    'a=1=2',
    'a[]=1',
  ]
  expect(new Set(different.map((query) => printOf({ target: `/a?${query}` }))).size).toBe(different.length)
})

it('binds method, path, media type and bytes', () => {
  const base = { target: '/a', type: 'text/plain', body: 'x' }
  const all: Sent[] = [
    base,
    { ...base, method: 'PUT' },
    { ...base, target: '/b' },
    { ...base, target: '/%61' },
    { ...base, type: 'text/html' },
    { ...base, body: 'y' },
    { ...base, body: 'x ' },
  ]
  expect(new Set(all.map((one) => printOf(one))).size).toBe(all.length)
  for (const type of ['text/plain; charset=utf-8', 'Text/Plain', ' text/plain ;a=b'])
    expect(printOf({ ...base, type })).toBe(printOf(base))
  // A body that is no JSON counts by its bytes, whatever its type says.
  expect(jsonPrint('{"a": 1,}')).not.toBe(jsonPrint('{"a":1,}'))
  expect(printOf({ type: 'application/problem+json', body: '{"b":1,"a":2}' })).toBe(
    printOf({ type: 'application/problem+json', body: '{"a":2,"b":1}' }),
  )
})

const part = fc.record({
  name,
  body: fc.uint8Array({ maxLength: 40 }),
  type: fc.constantFrom('text/plain', 'image/png'),
})
const boundary = fc.stringMatching(/^[a-zA-Z0-9'()+_-]{10,40}$/).map((text) => `----${text}`)

property(
  'does not depend on the boundary of a multipart body, and on everything else',
  [fc.array(part, { minLength: 1, maxLength: 4 }), fc.array(part, { minLength: 1, maxLength: 4 }), boundary, boundary],
  (parts, others, one, other) => {
    const printed = (list: typeof parts, mark: string) =>
      printOf({ type: `multipart/form-data; boundary="${mark}"`, body: multipart(list, mark) })
    expect(printed(parts, one)).toBe(printed(parts, other))
    const meaning = (list: typeof parts) => JSON.stringify(list.map((each) => ({ ...each, body: [...each.body] })))
    expect(printed(parts, one) === printed(others, other)).toBe(meaning(parts) === meaning(others))
  },
  { cases: 2_000 },
)

function multipart(parts: readonly { name: string; body: Uint8Array; type: string }[], mark: string): Uint8Array {
  const pieces = parts.flatMap((each) => [
    Buffer.from(
      `--${mark}\r\ncontent-disposition: form-data; name="${each.name}"\r\nContent-Type: ${each.type}\r\n\r\n`,
    ),
    Buffer.from(each.body),
    Buffer.from('\r\n'),
  ])
  return Buffer.concat([...pieces, Buffer.from(`--${mark}--\r\n`)])
}

it('does as the forms of the platform do', async () => {
  const sentBy = async () => {
    const form = new FormData()
    form.append('amount', '5')
    form.append('file', new Blob(['x\r\n--y'], { type: 'image/png' }), 'a.png')
    const request = new Request('http://localhost/', { method: 'POST', body: form })
    return { type: request.headers.get('content-type') ?? '', body: new Uint8Array(await request.arrayBuffer()) }
  }
  const [one, other] = [await sentBy(), await sentBy()]
  expect(one.type).not.toBe(other.type)
  expect(printOf(one)).toBe(printOf(other))
})

it('counts the fields that a rule leaves, and no others', () => {
  const omit = { omit: ['/sentAt'] }
  expect(jsonPrint('{"a":1,"sentAt":2}', omit)).toBe(jsonPrint('{"sentAt":3,"a":1}', omit))
  expect(jsonPrint('{"a":1,"sentAt":2}', omit)).not.toBe(jsonPrint('{"a":2,"sentAt":2}', omit))
  const only = { only: ['/a'] }
  expect(jsonPrint('{"a":1,"b":2}', only)).toBe(jsonPrint('{"a":1,"b":3}', only))
  expect(jsonPrint('{"a":1}', only)).not.toBe(jsonPrint('{"a":2}', only))
  const text = (body: string, target = '/a') => printOf({ type: 'text/plain', body, target }, only)
  expect(text('x')).not.toBe(text('y'))
  expect(text('x')).not.toBe(text('x', '/b'))
  expect(contentRule({})).toEqual({})
})

it('counts a part with fields of megabytes by a digest, and tells such parts apart', () => {
  const print = (mark: string, name: string): string => {
    const body = `--${mark}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\nx\r\n--${mark}--\r\n`
    return printOf({ type: `multipart/form-data; boundary=${mark}`, body })
  }
  const long = 'n'.repeat(2_000_000)
  expect(print('a', long)).toBe(print('b', long))
  expect(print('a', long)).not.toBe(print('a', `${long}n`))
})
