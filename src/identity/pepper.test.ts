import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { fingerprint, isStoredKey, type Key, pepperOf, sameContent, scope, storedKey } from './index.js'

const secret = 'the-first-secret-of-the-shop'
const next = new TextEncoder().encode('the-second-secret-of-the-shop')
const name = storedKey(scope('tenant-1'), 'order-4711' as Key)

describe('a pepper', () => {
  it('hides a name by HMAC-SHA-256, and these names never change between versions', () => {
    const pepper = pepperOf(secret)
    expect(pepper.id).toBe('d72f58e9')
    const mac = createHmac('sha256', secret).update(name).digest('base64url')
    expect(pepper.hide(name)).toBe(`hmac256-${pepper.id}:${mac}`)
    expect(pepper.hide(name)).toBe('hmac256-d72f58e9:4MNf9vO1iZI7oK_2nuA4toDQb1SA2tjSQK3yArBDChI')
    expect(pepperOf([secret, next]).hide(name)).toBe('hmac256-69289d8a:6IEswm6hMBpqmtB3zsL_Gr4WCeQosHbFDDP6hc455k4')
  })

  it('is the same for text and for its bytes, and another one for another secret', () => {
    expect(pepperOf(new TextEncoder().encode(secret)).hide(name)).toBe(pepperOf(secret).hide(name))
    expect(pepperOf([secret]).hide(name)).toBe(pepperOf(secret).hide(name))
    const ids = [secret, next, [secret, next], [next, secret]].map((secrets) => pepperOf(secrets).id)
    expect(new Set(ids).size).toBe(4)
  })

  it('brings forward what an earlier one made, and leaves alone what it made itself', () => {
    const [first, both] = [pepperOf(secret), pepperOf([secret, next])]
    expect(both.hide(first.hide(name))).toBe(both.hide(name))
    expect(both.hide(both.hide(name))).toBe(both.hide(name))
    expect(both.ids).toEqual([first.id, both.id])
    const strange = 'something else' as typeof name
    expect(both.hide(strange)).toBe(strange)
  })

  it('refuses what another one made, and never tells a secret', () => {
    const theirs = pepperOf(next).hide(name)
    const refused = expect.objectContaining({
      code: 'PEPPER_MISMATCH',
      details: { stored: pepperOf(next).id, given: pepperOf(secret).id },
    })
    expect(() => pepperOf(secret).hide(theirs)).toThrow(refused)
    expect(JSON.stringify(pepperOf(secret))).not.toContain(secret)
  })

  it('names what is stored in a form that is told from all others', () => {
    expect([name, pepperOf(secret).hide(name)].map(isStoredKey)).toEqual([true, true])
    expect(['', `hmac256:${name.slice(7)}`, `sha512:${name.slice(7)}`, undefined].some(isStoredKey)).toBe(false)
  })

  it.each([
    ['short', 'fifteen-bytes..'],
    ['long', 'x'.repeat(1_025)],
    ['with a space', 'sixteen bytes or more'],
    ['empty', []],
    ['too many', Array.from({ length: 17 }, (_, place) => `${secret}-${place}`)],
    ['no text', 1234567890123456],
    ['nothing', undefined],
    ['one of a list', [secret, '']],
  ])('that is %s is refused', (_what, secrets) => {
    expect(() => pepperOf(secrets as string)).toThrow(
      expect.objectContaining({ code: 'ARGUMENT_INVALID', details: { option: 'pepper' } }),
    )
  })
})

describe('a fingerprint under a pepper', () => {
  const pepper = pepperOf([secret, next])
  const content = { value: { amount: 5, sentAt: 1 } }

  it.each([{}, { omit: ['/sentAt'] }, { only: ['/amount'] }])('keeps its rule, and is compared by it: %j', (rule) => {
    const plain = fingerprint(content, rule)
    const hidden = pepper.hide(plain)
    expect(hidden.slice(0, hidden.indexOf(':'))).toBe(
      plain.slice(0, plain.indexOf(':')).replace('sha256', `hmac256-${pepper.id}`),
    )
    expect(hidden).not.toContain(plain.slice(-43))
    expect(pepper.hide(pepperOf(secret).hide(plain))).toBe(hidden)
    expect(sameContent(hidden, content, undefined, pepper)).toBe(true)
    expect(sameContent(plain, content, undefined, pepper)).toBe(true)
    expect(sameContent(hidden, { value: { amount: 500, sentAt: 1 } }, undefined, pepper)).toBe(false)
    expect(() => sameContent(hidden, content)).toThrow(expect.objectContaining({ code: 'FINGERPRINT_INVALID' }))
  })

  it('is made of bytes, too', () => {
    const bytes = { bytes: new Uint8Array([1, 2]) }
    expect(pepper.hide(fingerprint(bytes))).toMatch(/^bytes-hmac256-[0-9a-f]{8}:/)
    expect(sameContent(pepper.hide(fingerprint(bytes)), bytes, undefined, pepper)).toBe(true)
  })
})
