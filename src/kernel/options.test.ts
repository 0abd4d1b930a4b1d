import { describe, expect, expectTypeOf, it } from 'vitest'
import { defined, demandKnown, demandWhole, nearestName, pick } from './options.js'

describe('demandKnown', () => {
  const known = ['attempts', 'deadline']
  const refused = (options: object) => {
    try {
      demandKnown(options, known, 'options', 'POLICY_INVALID')
    } catch (error) {
      return error
    }
    return undefined
  }

  it.each([
    {},
    { attempts: 3 },
    { attempts: 3, deadline: undefined },
    { attemps: undefined },
    { [Symbol('x')]: 1 },
    [],
  ])('takes %o', (options) => {
    expect(refused(options)).toBeUndefined()
  })

  it('refuses what it does not know by its name, with the names that it knows and without its value', () => {
    expect(refused({ deadline: 'secret', attempts: 1, timeout: 'secret-value' })).toMatchObject({
      code: 'POLICY_INVALID',
      message: 'options: timeout is not known. Known are attempts, deadline.',
      details: { path: 'options', position: 2, option: 'timeout' },
    })
    const { message } = refused({ atempts: 'secret' }) as Error
    expect(message).toBe('options: atempts is not known. Did you mean attempts? Known are attempts, deadline.')
  })

  it.each([
    ['x'.repeat(500), `${'x'.repeat(40)}…`],
    ['a\nb\u001b[31m\u202e', 'a?b??31m?'],
    ['', 'an empty name'],
  ])('shows of the name %j only so much', (name, option) => {
    expect(refused({ [name]: 1 })).toMatchObject({ details: { option } })
  })

  it.each([null, undefined, 7, 'secret', true])('refuses %o in place of an object', (options) => {
    expect(refused(options as never)).toMatchObject({
      message: 'options: must be an object.',
      details: { path: 'options' },
    })
  })

  it('knows no name that only the prototype has', () => {
    expect(refused({ constructor: 1 })).toMatchObject({ details: { position: 0 } })
    expect(refused(JSON.parse('{"__proto__": 1}'))).toMatchObject({ details: { position: 0 } })
    expect(refused(Object.create({ attemps: 1 }))).toBeUndefined()
    expect(() => demandKnown({ a: 1 }, known, 'options')).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
  })
})

describe('nearestName', () => {
  const known = ['attempts', 'budget', 'url', 'load', 'json', 'maxRetryAfter', 'honoursKeys']

  it.each([
    ['atempts', 'attempts'],
    ['attemtps', 'attempts'],
    ['retryAfterMax', undefined],
    ['maxretryafter', 'maxRetryAfter'],
    ['honorsKeys', 'honoursKeys'],
    ['lod', 'load'],
    ['ulr', 'url'],
    ['key', undefined],
    ['id', undefined],
    ['budgie', 'budget'],
    ['deadline', undefined],
    ['a'.repeat(65), undefined],
  ])('of %s is %s', (written, nearest) => {
    expect(nearestName(written, known)).toBe(nearest)
  })

  it('is none where two are equally close', () => {
    expect(nearestName('hold', ['held', 'gold'])).toBeUndefined()
  })
})

describe('defined', () => {
  it('leaves out what is undefined, and nothing else', () => {
    const given = { a: undefined, b: 0, c: '', d: null, e: false, f: Number.NaN }
    expect(Object.entries(defined(given))).toEqual(Object.entries(given).slice(1))
    expect(given).toHaveProperty('a')
    expect(Object.keys(defined({}))).toEqual([])
  })

  it('makes optional what may be undefined', () => {
    const given: { a: number | undefined; b: string; c?: boolean | undefined } = { a: 1, b: 'b' }
    expectTypeOf(defined(given)).branded.toEqualTypeOf<{ a?: number; b: string; c?: boolean }>()
  })
})

describe('pick', () => {
  interface Options {
    readonly attempts?: number
    readonly deadline?: string | undefined
    readonly name: string
  }

  it('takes the named options that are given', () => {
    const options: Options = { attempts: 3, deadline: undefined, name: 'a' }
    const picked = pick(options, ['attempts', 'deadline'])
    expect(Object.entries(picked)).toEqual([['attempts', 3]])
    expect(Object.keys(pick({ name: 'a' } as Options, ['attempts', 'name']))).toEqual(['name'])
    expectTypeOf(picked).branded.toEqualTypeOf<{ readonly attempts?: number; readonly deadline?: string }>()
    expectTypeOf(pick(options, ['name'])).branded.toEqualTypeOf<{ readonly name: string }>()
  })
})

it('a whole number between two others is itself, and anything else is refused with the reason', () => {
  const refuse = (why: string): Error => new Error(why)
  expect([0, 3, 5].map((value) => demandWhole(value, 0, 5, refuse))).toEqual([0, 3, 5])
  for (const value of [-1, 6, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '3' as unknown as number])
    expect(() => demandWhole(value, 0, 5, refuse)).toThrow('It is a whole number from 0 to 5.')
})
