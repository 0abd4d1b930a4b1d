import { describe, expect, it } from 'vitest'
import { among } from './origins.js'

describe('among', () => {
  it('compares origins, whatever path, case or default port they are written with', () => {
    const listed = among(['https://Pay.Example:443/v1/charges', new URL('http://127.0.0.1:8080')], 'trusts')
    expect(['https://pay.example', 'http://127.0.0.1:8080'].map(listed)).toEqual([true, true])
    expect(['http://pay.example', 'https://pay.example:8443', 'https://pay.example.evil'].map(listed)).toEqual([
      false,
      false,
      false,
    ])
  })

  it('asks a function, and knows nobody by default', () => {
    expect(among((origin) => origin.endsWith('.internal'), 'trusts')('http://a.internal')).toBe(true)
    expect(among(undefined, 'trusts')('https://pay.example')).toBe(false)
  })

  it.each(['nowhere', '', 'file:///etc', 'data:,x', '//pay.example'])('refuses %j without repeating it', (origin) => {
    const error = expect.objectContaining({
      code: 'ARGUMENT_INVALID',
      message: expect.stringContaining('trusts: the origin at position 1'),
    })
    expect(() => among(['https://pay.example', origin], 'trusts')).toThrow(error)
  })

  it.each([7, null, undefined, {}, Symbol('x')])('refuses what is no text at all: %s', (origin) => {
    const error = expect.objectContaining({ code: 'ARGUMENT_INVALID', details: { path: 'trusts', position: 0 } })
    expect(() => among([origin as never], 'trusts')).toThrow(error)
  })
})
