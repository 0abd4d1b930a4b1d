import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { property } from '../../../test/property.js'
import { isRepriseError, type RepriseError } from '../errors.js'
import { canonicalJson, canonicalJsonOf, type JsonLimits, readableJsonOf } from './index.js'

function refusal(value: unknown, limits?: JsonLimits): RepriseError {
  try {
    canonicalJsonOf(value, limits)
  } catch (error) {
    if (isRepriseError(error)) return error
    throw error
  }
  throw new Error('nothing was refused')
}

class Money {
  readonly #amount: number
  constructor(amount: number) {
    this.#amount = amount
  }
  get amount() {
    return this.#amount
  }
}

class Hidden {
  readonly shown = 1
  toJSON(name: string) {
    return { name, shown: this.shown }
  }
}

describe('canonical text of values', () => {
  it.each<[string, unknown, string]>([
    ['null', null, 'null'],
    ['a string', 'a"\\\n\u0001é😀\u2028', '"a\\"\\\\\\n\\u0001é😀\u2028"'],
    ['-0', -0, '0'],
    ['1e21', 1e21, '1e+21'],
    ['members in order', { b: 1, a: { d: [true, false], c: null } }, '{"a":{"c":null,"d":[true,false]},"b":1}'],
    ['integers as names', { 10: 'ten', 9: 'nine', a: 0 }, '{"10":"ten","9":"nine","a":0}'],
    ['undefined members', { b: undefined, a: 1, c: undefined }, '{"a":1}'],
    ['only undefined members', { a: undefined }, '{}'],
    ['an own __proto__', JSON.parse('{"b":1,"__proto__":{"x":1}}'), '{"__proto__":{"x":1},"b":1}'],
    ['no prototype', Object.assign(Object.create(null), { b: 1, a: 2 }), '{"a":2,"b":1}'],
    ['a getter', Object.defineProperty({}, 'a', { enumerable: true, get: () => 1 }), '{"a":1}'],
    ['a URL', new URL('https://a.example/b'), '"https://a.example/b"'],
    ['bytes with a toJSON', Buffer.from('a'), '{"data":[97],"type":"Buffer"}'],
    [
      'toJSON',
      { h: new Hidden(), l: [0, new Hidden()] },
      '{"h":{"name":"h","shown":1},"l":[0,{"name":"1","shown":1}]}',
    ],
    ['toJSON at the top', new Hidden(), '{"name":"","shown":1}'],
    ['toJSON to undefined', { a: { toJSON: () => undefined }, b: 1 }, '{"b":1}'],
    ['toJSON of a function', Object.assign(() => 1, { toJSON: () => 'f' }), '"f"'],
    ['a Date', [new Date(0)], '["1970-01-01T00:00:00.000Z"]'],
    ['an invalid Date', [new Date(Number.NaN)], '[null]'],
    ['the same object twice', [sharedObject(), sharedObject()], '[{"a":1},{"a":1}]'],
    ['a proxy', new Proxy({ b: 1, a: [new Proxy([1], {})] }, {}), '{"a":[[1]],"b":1}'],
  ])('%s', (_name, value, expected) => {
    expect(canonicalJsonOf(value)).toBe(expected)
  })

  it.each<[bigint, string]>([
    [0n, '0'],
    [-7n, '-7'],
    [9007199254740993n, '9007199254740993'],
    [10n ** 20n, '100000000000000000000'],
    [10n ** 21n, '1e+21'],
    [-(10n ** 30n) - 1n, '-1.000000000000000000000000000001e+30'],
  ])('the bigint %s is the number of that value', (value, expected) => {
    expect(canonicalJsonOf([value])).toBe(`[${expected}]`)
    expect(canonicalJson(String(value))).toBe(expected)
  })

  it('writes a text while another one is being written, by a getter or a toJSON', () => {
    const inner = { toJSON: () => canonicalJsonOf({ b: 1, a: 'inner' }) }
    const value = {
      first: 'outer',
      get second() {
        return canonicalJsonOf(['x'.repeat(5_000)]).length
      },
      third: inner,
    }
    expect(canonicalJsonOf(value)).toBe(String.raw`{"first":"outer","second":5004,"third":"{\"a\":\"inner\",\"b\":1}"}`)
  })

  it.each([4_094, 4_095, 300_000])('writes text past any room that it began with: %d characters', (length) => {
    for (const letter of ['x', 'é', '😀', '"']) {
      const value = { text: letter.repeat(length), rest: [1, 'end'] }
      const limits = { maxBytes: 2 ** 22 }
      expect(canonicalJsonOf(value, limits)).toBe(canonicalJson(JSON.stringify(value), limits))
    }
  })

  it('lets errors of getters, proxies and toJSON pass', () => {
    const thrown = new Error('mine')
    const fail = () => {
      throw thrown
    }
    for (const value of [
      Object.defineProperty({}, 'a', { enumerable: true, get: fail }),
      new Proxy({}, { ownKeys: fail }),
      { toJSON: fail },
    ]) {
      expect(() => canonicalJsonOf([value])).toThrow(thrown)
    }
  })
})

function sharedObject(): object {
  return shared
}
const shared = { a: 1 }

describe('refusals', () => {
  const cycle: unknown[] = [{}]
  cycle.push({ again: cycle })
  const holes = [1, 1, 2]
  delete holes[1]

  it.each<[string, unknown]>([
    ['number that is not finite', Number.NaN],
    ['number that is not finite', Number.NEGATIVE_INFINITY],
    ['function', () => 1],
    ['function', class {}],
    ['symbol', Symbol('s')],
    ['undefined', undefined],
    ['Map', new Map()],
    ['Set', new Set([1])],
    ['WeakMap', new WeakMap()],
    ['Uint8Array', new Uint8Array(1)],
    ['Float64Array', new Float64Array(1)],
    ['ArrayBuffer', new ArrayBuffer(1)],
    ['DataView', new DataView(new ArrayBuffer(1))],
    ['Number', Object(1)],
    ['String', Object('a')],
    ['Boolean', Object(true)],
    ['BigInt', Object(1n)],
    ['Symbol', Object(Symbol('s'))],
    ['Promise', Promise.resolve()],
    ['RegExp', /a/],
    ['Error', new TypeError('no')],
    ['Arguments', argumentsOf(1)],
    ['object with an inner state', new Headers()],
    ['object with an inner state', { [Symbol.toStringTag]: 'sesame' }],
    ['undefined', { toJSON: () => undefined }],
    ['instance of a class', new Money(5)],
    ['instance of a class', Object.create({ inherited: 1 })],
    ['instance of a class', Object.create(Object.assign(Object.create(null), { inherited: 1 }))],
    ['instance of a class', new (class extends Array {})()],
    ['member with a symbol for its name', { a: 1, [Symbol('s')]: 5 }],
    ['member that is not enumerable', Object.defineProperty({ a: 1 }, 'b', { value: 5 })],
    ['member that is not enumerable', Object.defineProperty({}, 'b', { get: () => 5 })],
    ['accessor that cannot be read', { a: 1, set b(_amount: number) {} }],
    ['cycle', cycle],
  ])('JSON_VALUE_UNSUPPORTED: %s', (kind, value) => {
    const error = refusal(value)
    expect([error.code, error.details['kind']]).toEqual(['JSON_VALUE_UNSUPPORTED', kind])
    expect(error.message).not.toContain('sesame')
    if (kind === 'undefined') return
    expect(refusal({ member: value }).code).toBe('JSON_VALUE_UNSUPPORTED')
    expect(refusal([value]).details).toMatchObject({ kind })
  })

  it.each<[string, object]>([
    ['Map', new Map([[1, 2]])],
    ['Set', new Set([1])],
    ['WeakMap', new WeakMap()],
    ['WeakSet', new WeakSet()],
    ['Promise', Promise.resolve()],
    ['RegExp', /a/],
    ['Date', Object.assign(new Date(0), { toJSON: undefined })],
    ['Error', new TypeError('no')],
    ['Number', Object(1) as object],
    ['BigInt', Object(1n) as object],
    ['Uint8Array', new Uint8Array(0)],
    ['DataView', new DataView(new ArrayBuffer(1))],
    ['ArrayBuffer', new ArrayBuffer(1)],
    ['SharedArrayBuffer', new SharedArrayBuffer(1)],
    ['Arguments', argumentsOf(1) as object],
    ['generator', (function* () {})()],
    ['iterator of a Map', new Map().keys()],
    ['iterator of a Set', new Set().keys()],
  ])('knows a %s behind another tag or prototype', (_name, value) => {
    Object.defineProperty(value, Symbol.toStringTag, { value: 'Object', configurable: true })
    expect(refusal(value).details).toMatchObject({ kind: 'object with an inner state' })
    Reflect.deleteProperty(value, Symbol.toStringTag)
    Object.setPrototypeOf(value, null)
    expect(refusal(value).code).toBe('JSON_VALUE_UNSUPPORTED')
  })

  it('goes by the tag where the runtime cannot tell', async () => {
    vi.resetModules()
    vi.spyOn(process, 'getBuiltinModule').mockImplementation((() => undefined) as never)
    const copy = await import('./index.js')
    const disguised = Object.defineProperty(new Map(), Symbol.toStringTag, { value: 'Object' })
    expect(() => copy.canonicalJsonOf({ b: disguised })).toThrow(
      expect.objectContaining({ details: { kind: 'instance of a class', depth: 1, path: '/b' } }),
    )
    expect(() => copy.canonicalJsonOf(new Map())).toThrow(expect.objectContaining({ code: 'JSON_VALUE_UNSUPPORTED' }))
    vi.restoreAllMocks()
  })

  it('refuses a bigint of more than 10,000 digits before it is printed', () => {
    const largest = 10n ** 10_000n - 1n
    expect(canonicalJsonOf(largest)).toBe(canonicalJson('9'.repeat(10_000)))
    expect(canonicalJsonOf(-largest)).toBe(canonicalJson(`-${'9'.repeat(10_000)}`))
    const print = vi.spyOn(BigInt.prototype, 'toString')
    for (const value of [largest + 1n, -largest - 1n, 1n << 200_000_000n, -(1n << 200_000_000n)]) {
      const error = refusal([value], { maxBytes: 67_108_864 })
      expect([error.code, error.details]).toEqual(['JSON_TOO_LARGE', { maxDigits: 10_000 }])
    }
    expect(print).not.toHaveBeenCalled()
    print.mockRestore()
  })

  it('counts all digits of a bigint, so that many of them stay within the limit too', () => {
    const value = 10n ** 999n
    expect(canonicalJsonOf([value, value], { maxBytes: 2_003 })).toBe('[1e+999,1e+999]')
    expect(refusal([value, value], { maxBytes: 2_002 }).details).toEqual({ maxBytes: 2_002 })
  })

  it('refuses limits that are none', () => {
    expect(refusal(1, null as unknown as JsonLimits).code).toBe('ARGUMENT_INVALID')
  })

  it.each<[string, unknown]>([
    ['', new Money(5)],
    ['/order/lines/1/price', { a: 1, order: { lines: [{ price: 1 }, { price: new Money(5) }, 2] }, z: 1 }],
    ['/order/price', { order: Object.defineProperty({ a: 1 }, 'price', { value: 5 }) }],
    ['/order', { order: { a: { b: 1 }, [Symbol('s')]: 5 } }],
    ['/order/price', { order: { a: [], set price(_amount: number) {} } }],
    ['/a~1b/c~0d', { 'a/b': { 'c~d': Number.NaN } }],
    ['/a\ufffdb', { 'a\nb': Number.NaN }],
    ['/holder/price', { holder: { toJSON: () => ({ price: new Money(5) }) } }],
    [`/${'n'.repeat(40)}…`, { ['n'.repeat(10_000)]: Number.NaN }],
    [`${'/0'.repeat(16)}/…`, deep(20, Number.NaN)],
  ])('names the path %s', (path, value) => {
    const error = refusal(value)
    expect(error.details['path']).toBe(path)
    expect(error.message).toContain(`at ${path === '' ? 'the top' : path}.`)
  })

  it('refuses undefined and holes in arrays', () => {
    expect(refusal([undefined]).details).toEqual({ kind: 'undefined', depth: 1, path: '/0' })
    expect(refusal(holes).details).toEqual({ kind: 'undefined', depth: 1, path: '/1' })
    expect(refusal(new Array(4_294_967_295)).code).toBe('JSON_VALUE_UNSUPPORTED')
  })

  it('refuses lone surrogates in strings and names', () => {
    for (const value of ['\ud800', 'a\udc00', ['\udc00\ud800'], { '\ud83d': 1 }, { a: { '\ud83dx': 1 } }]) {
      expect(refusal(value).code).toBe('JSON_LONE_SURROGATE')
    }
  })

  it('refuses more bytes than the limit, counted in the canonical text', () => {
    for (const value of ['abc', 'é€😀', { é: [1, 2, { a: null }] }, [10n ** 20n, 1.5, true], '\n\u0001"']) {
      const size = new TextEncoder().encode(canonicalJsonOf(value)).length
      expect(canonicalJsonOf(value, { maxBytes: size })).toBe(canonicalJsonOf(value))
      expect(refusal(value, { maxBytes: size - 1 }).code).toBe('JSON_TOO_LARGE')
    }
    expect(refusal(10n ** 2_000n, { maxBytes: 1_000 }).code).toBe('JSON_TOO_LARGE')
    expect(refusal('a'.repeat(1_048_575)).code).toBe('JSON_TOO_LARGE')
  })

  it('refuses more depth than the limit, and takes no stack up to it', () => {
    expect(canonicalJsonOf(nested(1_000), { maxDepth: 1_000 })).toBe(`${'{"a":['.repeat(500)}${']}'.repeat(500)}`)
    expect(refusal(nested(130)).code).toBe('JSON_TOO_DEEP')
    const endless = { toJSON: () => ({ endless }) }
    expect(refusal(endless).code).toBe('JSON_TOO_DEEP')
  })
})

function deep(levels: number, innermost: unknown): unknown {
  return levels === 0 ? innermost : [deep(levels - 1, innermost)]
}

function nested(depth: number): unknown {
  let value: unknown = []
  for (let level = 1; level < depth; level++) value = level % 2 === 1 ? { a: value } : [value]
  return value
}

function argumentsOf(..._values: unknown[]): unknown {
  // biome-ignore lint/complexity/noArguments: the object itself is what is tested.
  return arguments
}

describe('agreement with canonicalJson', () => {
  property(
    'of JSON.stringify, for all that JSON.stringify keeps',
    [fc.jsonValue({ stringUnit: 'binary', maxDepth: 4 })],
    (value) => {
      expect(canonicalJsonOf(value)).toBe(canonicalJson(JSON.stringify(value)))
    },
  )

  property(
    'and with JSON.stringify on finite numbers',
    [fc.double({ noNaN: true, noDefaultInfinity: true })],
    (value) => {
      expect(canonicalJsonOf(value)).toBe(JSON.stringify(value))
      expect(canonicalJsonOf(value)).toBe(canonicalJson(JSON.stringify(value)))
    },
  )
})

describe('readableJsonOf', () => {
  property('is given back by JSON.parse as it was', [fc.jsonValue({ maxDepth: 4 })], (value) => {
    const plain: unknown = JSON.parse(JSON.stringify(value))
    expect(JSON.parse(readableJsonOf(plain))).toEqual(plain)
  })

  it.each([
    ['bigint', 1n],
    ['Date', new Date(0)],
    ['Uint8Array', Buffer.from('a')],
    ['object with a toJSON', { toJSON: () => 1 }],
    ['Map', new Map([[1, 2]])],
    ['instance of a class', new (class Money {})()],
  ])('refuses a %s, which would come back as something else', (kind, value) => {
    for (const [path, depth, holder] of [
      ['', 0, value],
      ['/0', 1, [value]],
      ['/value', 1, { value }],
    ]) {
      expect(() => readableJsonOf(holder)).toThrow(
        expect.objectContaining({ code: 'JSON_VALUE_UNSUPPORTED', details: { kind, depth, path } }),
      )
    }
  })

  it('keeps objects without a prototype, or of another realm, and leaves out members that are undefined', () => {
    const bare = Object.assign(Object.create(null) as object, { a: 1 })
    expect(readableJsonOf([bare, runInNewContext('({ b: 2 })'), { c: undefined }])).toBe('[{"a":1},{"b":2},{}]')
  })
})

it.each([1, 15, 16, 17, 40])(
  'sees a cycle that closes %i levels above, and no cycle in what is only shared',
  (levels) => {
    const top: Record<string, unknown> = {}
    let inner = top
    for (let level = 1; level < levels; level += 1) {
      const next: Record<string, unknown> = {}
      inner['next'] = next
      inner = next
    }
    const shared = {}
    inner['twice'] = [shared, shared]
    expect(canonicalJsonOf(top)).toContain('"twice":[{},{}]')
    inner['again'] = top
    expect(() => canonicalJsonOf(top)).toThrow(expect.objectContaining({ code: 'JSON_VALUE_UNSUPPORTED' }))
  },
)
