import { describe, expect, it } from 'vitest'
import { demandKnown } from './known-options.js'

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

  it('refuses what it does not know by its position, with the names that it knows and without what was given', () => {
    const error = refused({ deadline: 'secret', attempts: 1, 'secret-name': 'secret-value' })
    expect(error).toMatchObject({
      code: 'POLICY_INVALID',
      message: 'options: the one at position 2 is not known; known are attempts, deadline.',
      details: { path: 'options', position: 2 },
    })
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
