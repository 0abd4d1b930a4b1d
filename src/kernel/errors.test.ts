import { describe, expect, it, vi } from 'vitest'
import { type ErrorCode, errorCodes, isRepriseError, RepriseError } from './errors.js'

async function secondCopy(): Promise<typeof import('./errors.js')> {
  vi.resetModules()
  return await import('./errors.js')
}

describe('the list of codes', () => {
  const codes = Object.keys(errorCodes)

  it('is sorted, so that a new code has one place', () => {
    expect(codes).toEqual([...codes].sort())
  })

  it('holds upper case names with a meaning each, all different', () => {
    for (const [code, meaning] of Object.entries(errorCodes)) {
      expect(code).toMatch(/^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$/)
      expect(meaning).toMatch(/^[A-Z].{10,}\.$/)
    }
    expect(new Set(Object.values(errorCodes)).size).toBe(codes.length)
  })

  it('is closed: a code outside the list does not compile', () => {
    // @ts-expect-error the code is not in the list
    const made = new RepriseError('NOT_A_CODE', 'nothing')
    expect(Object.hasOwn(errorCodes, made.code)).toBe(false)
  })
})

describe('RepriseError', () => {
  it('is an Error with code, message, name and a stack', () => {
    const error = new RepriseError('KEY_EMPTY', 'The key is empty.')
    expect(error).toBeInstanceOf(Error)
    expect(error).toMatchObject({ name: 'RepriseError', code: 'KEY_EMPTY', message: 'The key is empty.' })
    expect(error.stack).toContain('errors.test')
    expect(String(error)).toBe('RepriseError: The key is empty.')
  })

  it('keeps its cause, whatever it is, and has none where none was given', () => {
    const cause = new TypeError('inner')
    expect(new RepriseError('KEY_EMPTY', 'm', { cause }).cause).toBe(cause)
    const withUndefined = new RepriseError('KEY_EMPTY', 'm', { cause: undefined })
    expect(Object.hasOwn(withUndefined, 'cause')).toBe(true)
    expect(Object.hasOwn(new RepriseError('KEY_EMPTY', 'm'), 'cause')).toBe(false)
  })

  it('keeps a copy of what was suppressed and of its details, and lets nobody change them', () => {
    const suppressed: unknown[] = [new Error('later'), 'text']
    const details: Record<string, number> = { index: 3 }
    const error = new RepriseError('KEY_EMPTY', 'm', { suppressed, details })
    suppressed.pop()
    details['index'] = 4
    expect(error.suppressed).toHaveLength(2)
    expect(error.details).toEqual({ index: 3 })
    expect(Object.isFrozen(error.suppressed)).toBe(true)
    expect(Object.isFrozen(error.details)).toBe(true)
  })

  it('has empty details and nothing suppressed by default', () => {
    expect(new RepriseError('KEY_EMPTY', 'm')).toMatchObject({ details: {}, suppressed: [] })
  })

  it('writes itself down without stack, cause and what was suppressed', () => {
    const error = new RepriseError('KEY_TOO_LONG', 'Too long.', {
      cause: new Error('secret'),
      suppressed: [new Error('secret')],
      details: { maxLength: 255 },
    })
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      name: 'RepriseError',
      code: 'KEY_TOO_LONG',
      message: 'Too long.',
      details: { maxLength: 255 },
    })
    expect(JSON.stringify(error)).not.toContain('secret')
  })

  it('does not show its brand among its properties', () => {
    const error = new RepriseError('KEY_EMPTY', 'm')
    expect(Object.getOwnPropertySymbols({ ...error })).toEqual([])
  })
})

describe('isRepriseError', () => {
  it('knows its own errors, and their codes', () => {
    const error: unknown = new RepriseError('KEY_EMPTY', 'm')
    expect(isRepriseError(error)).toBe(true)
    expect(isRepriseError(error, 'KEY_EMPTY')).toBe(true)
    expect(isRepriseError(error, 'KEY_MISSING')).toBe(false)
    if (isRepriseError(error, 'KEY_EMPTY')) {
      const code: 'KEY_EMPTY' = error.code
      expect(code).toBe('KEY_EMPTY')
    }
  })

  it('knows errors of another copy of the package, in both directions', async () => {
    const other = await secondCopy()
    expect(other.RepriseError).not.toBe(RepriseError)
    const foreign = new other.RepriseError('KEY_EMPTY', 'm')
    expect(foreign).not.toBeInstanceOf(RepriseError)
    expect(isRepriseError(foreign, 'KEY_EMPTY')).toBe(true)
    expect(other.isRepriseError(new RepriseError('KEY_EMPTY', 'm'))).toBe(true)
  })

  it('knows errors of subclasses', () => {
    class Special extends RepriseError {}
    expect(isRepriseError(new Special('KEY_EMPTY', 'm'))).toBe(true)
  })

  it.each<[string, unknown]>([
    ['a plain lookalike', { name: 'RepriseError', code: 'KEY_EMPTY', message: 'm', details: {}, suppressed: [] }],
    ['an error with a code', Object.assign(new Error('m'), { code: 'KEY_EMPTY' satisfies ErrorCode })],
    ['its own JSON', JSON.parse(JSON.stringify(new RepriseError('KEY_EMPTY', 'm')))],
    ['the class', RepriseError],
    ['null', null],
    ['undefined', undefined],
    ['text', 'KEY_EMPTY'],
    ['a number', 7],
  ])('does not take %s for one', (_, value) => {
    expect(isRepriseError(value)).toBe(false)
  })
})
