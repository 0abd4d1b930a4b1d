import { describe, expect, it } from 'vitest'
import { among } from './origins.js'

describe('among', () => {
  it('compares origins, whatever path, case or default port they are written with', () => {
    const listed = among(['https://Pay.Example:443/v1/charges', new URL('http://127.0.0.1:8080')])
    expect(['https://pay.example', 'http://127.0.0.1:8080'].map(listed)).toEqual([true, true])
    expect(['http://pay.example', 'https://pay.example:8443', 'https://pay.example.evil'].map(listed)).toEqual([
      false,
      false,
      false,
    ])
  })

  it('asks a function, and knows nobody by default', () => {
    expect(among((origin) => origin.endsWith('.internal'))('http://a.internal')).toBe(true)
    expect(among(undefined)('https://pay.example')).toBe(false)
  })

  it.each(['nowhere', '', 'file:///etc', 'data:,x', '//pay.example'])('refuses %j without repeating it', (origin) => {
    const error = expect.objectContaining({ code: 'ARGUMENT_INVALID', message: expect.stringContaining('position 1') })
    expect(() => among(['https://pay.example', origin])).toThrow(error)
  })
})
