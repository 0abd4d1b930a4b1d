import fc from 'fast-check'
import { expect, it } from 'vitest'
import { property } from '../../test/property.js'
import { type Key, parseKey, type Scope, scope } from '../identity/index.js'
import { operationId } from './call-identity.js'

const word = fc.string({ unit: fc.constantFrom('a', ':', '1', '.'), minLength: 1, maxLength: 4 })
const triple = fc.tuple(word, word, word)

property('is the same only for the same operation, scope and key', [triple, triple], (one, two) => {
  const idOf = ([name, part, key]: [string, string, string]) => operationId(name, scope(part), key as Key)
  expect(idOf(one) === idOf(two)).toBe(one.join('\0') === two.join('\0'))
})

// The value was computed apart from this code: repeats that arrive after an upgrade must find their record.
it('is a name that can itself be the root of derived keys, and spells nothing out', () => {
  const id = operationId('pay', scope('shop'), 'order-4711' as Key)
  expect(parseKey(id)).toBe(id)
  expect(id).toBe('sha256:BBN15cegUZQ_Iir-z2G1AEazvMQ8nOkvrXUHoR53WEE')
})

it('refuses what is no scope and no key', () => {
  expect(() => operationId('pay', 'shop' as Scope, 'k' as Key)).toThrow(
    expect.objectContaining({ code: 'SCOPE_INVALID' }),
  )
  expect(() => operationId('pay', scope('shop'), '' as Key)).toThrow(expect.objectContaining({ code: 'KEY_EMPTY' }))
})
