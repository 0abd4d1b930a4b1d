import fc from 'fast-check'
import { expect, it } from 'vitest'
import { property } from '../../test/property.js'
import { seal, sealKeyBytes, unseal } from './seal.js'

const key = new Uint8Array(sealKeyBytes).fill(7)
const nothingUp = { next: () => 0, fill: (bytes: Uint8Array) => bytes.fill(0) }

property(
  'opens to what was sealed',
  [fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' })],
  (text, associated) => {
    expect(unseal(key, seal(key, text, associated), associated)).toBe(text)
  },
  { cases: 1_000 },
)

it('agrees with the test vector of a zero key (McGrew and Viega, test case 14)', () => {
  const zero = new Uint8Array(sealKeyBytes)
  const sealed = Buffer.from(seal(zero, '\0'.repeat(16), '', nothingUp), 'base64url').toString('hex')
  expect(sealed).toBe(`${'00'.repeat(12)}cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919`)
})

it('does not open under another key, with another associated text, or with one bit changed', () => {
  const sealed = seal(key, 'text', 'row 1')
  expect(() => unseal(new Uint8Array(sealKeyBytes), sealed, 'row 1')).toThrow()
  expect(() => unseal(key, sealed, 'row 2')).toThrow()
  const bytes = Buffer.from(sealed, 'base64url')
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 1
    expect(() => unseal(key, changed.toString('base64url'), 'row 1')).toThrow()
  }
  expect(() => unseal(key, 'AAAA', 'row 1')).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
})
