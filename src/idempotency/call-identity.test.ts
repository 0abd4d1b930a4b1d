import { expect, it } from 'vitest'
import { isSameContent } from '../atomicity/index.js'
import { fingerprint, type Key, mintKey, scope } from '../identity/index.js'
import { systemClock } from '../kernel/index.js'
import { identify, operationId } from './call-identity.js'
import { refusedBy } from './errors.js'
import { operationSettings } from './settings.js'

interface Order {
  readonly key: Key
  readonly amount: number
}

const settings = (more = {}) =>
  operationSettings<Order, unknown, string>(
    'pay',
    { scope: () => scope('shop'), key: ({ key }) => key, window: '1h', run: () => 1, ...more },
    { mode: 'atomic', names: [] },
  )

it('is of the input as it was, whatever becomes of it', () => {
  const input = { key: mintKey(), amount: 1 }
  const { key } = input
  const identity = identify(settings(), input, systemClock)
  Object.assign(input, { key: mintKey(), amount: 2 })
  expect(identity).toMatchObject({
    id: operationId('pay', scope('shop'), key),
    fingerprint: fingerprint({ value: { key, amount: 1 } }),
    input: { key, amount: 1 },
  })
  expect(isSameContent(identity, { format: 2, fingerprint: fingerprint({ value: { amount: 1 } }) })).toBe(false)
  const stored = fingerprint({ value: { amount: 1 } }, { only: ['/amount'] })
  expect(isSameContent(identity, { format: 2, fingerprint: stored })).toBe(true)
})

it('compares nothing where there is nothing to compare, or nothing that can be trusted', () => {
  const input = { key: mintKey(), amount: 1 }
  const unbound = identify(settings({ content: 'none' }), input, systemClock)
  expect(unbound.fingerprint).toBeUndefined()
  expect(isSameContent(unbound, { format: 2, fingerprint: fingerprint({ value: 9 }) })).toBe(true)
  const bound = identify(settings(), input, systemClock)
  expect(isSameContent(bound, { format: 1, fingerprint: undefined })).toBe(true)
  expect(isSameContent(bound, { format: 3, fingerprint: 'of tomorrow' })).toBe(true)
  expect(() => isSameContent(bound, { format: 2, fingerprint: 'nonsense' })).toThrow(
    expect.objectContaining({ code: 'FINGERPRINT_INVALID' }),
  )
})

it('keeps a copy of the content that a definition chooses', () => {
  const chosen = { list: [1] }
  const identity = identify(
    settings({ content: () => ({ value: chosen }) }),
    { key: mintKey(), amount: 1 },
    systemClock,
  )
  chosen.list.push(2)
  expect(identity.content).toEqual({ value: { list: [1] } })
  const bytes = { bytes: new Uint8Array(2) }
  expect(identify(settings({ content: () => bytes }), { key: mintKey(), amount: 1 }, systemClock).content).toBe(bytes)
})

it.each([
  ['mismatch', 'OPERATION_MISMATCH'],
  ['mode', 'OPERATION_MODE_CHANGED'],
  ['format', 'RECORD_FORMAT_NEWER'],
  ['in-flight', 'OPERATION_IN_FLIGHT'],
  ['unknown', 'OPERATION_UNKNOWN'],
  ['invalid', 'MARKER_INVALID'],
] as const)('a refusal because of %s has the code %s', (because, code) => {
  expect(refusedBy({ because, retryInMs: 5 }, undefined)).toMatchObject({ code })
})

it('is refused with a code where content gives nothing', () => {
  for (const content of [() => undefined, () => null, () => 'text']) {
    expect(() => identify(settings({ content }), { key: mintKey(), amount: 1 }, systemClock)).toThrow(
      expect.objectContaining({ code: 'ARGUMENT_INVALID', details: { option: 'content' } }),
    )
  }
})
