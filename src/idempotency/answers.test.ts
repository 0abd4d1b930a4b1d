import { expect, it } from 'vitest'
import { mintKey, scope } from '../identity/index.js'
import { memory } from '../stores/memory/index.js'
import { hold, leased } from './index.js'

const base = { scope: () => scope('shop'), key: () => mintKey(), window: '24h' } as const

it('are those of the mode and those of the definition, and nobody can change them', () => {
  const db = memory({ name: 'shop' })
  const pay = db.operation('pay', { ...base, attempts: 3, content: 'none', retryHorizon: '1h', run: () => 1 })
  const mail = leased('mail', {
    ...base,
    store: db,
    lease: '30s',
    recover: hold(),
    reversibility: 'irreversible',
    run: () => 1,
  })
  const identity = { mintedBy: 'caller', windowMs: 86_400_000, retryHorizonMs: 3_600_000, horizonDeclared: true }
  expect(pay.answers).toEqual({
    name: 'pay',
    mode: 'atomic',
    identity: { ...identity, content: 'ignored' },
    rung: 'atomic',
    placement: { layer: 'transaction', attempts: 3 },
    reversibility: 'guarded',
    domain: { name: 'shop', engine: 'memory', holds: 'marker and effect' },
    leaseMs: undefined,
    recovery: undefined,
  })
  expect(mail.answers).toEqual({
    name: 'mail',
    mode: 'leased',
    identity: { ...identity, retryHorizonMs: 86_400_000, horizonDeclared: false, content: 'compared' },
    rung: 'key',
    placement: { layer: 'application', attempts: 1 },
    reversibility: 'irreversible',
    domain: { name: 'shop', engine: 'memory', holds: 'marker' },
    leaseMs: 30_000,
    recovery: { kind: 'hold' },
  })
  for (const { answers } of [pay, mail]) {
    const parts = [answers, answers.identity, answers.placement, answers.domain]
    expect(parts.every((part) => Object.isFrozen(part))).toBe(true)
  }
})
