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
    placement: { layer: 'transaction', attempts: 3, foreignLayers: [], declared: 3 },
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
    placement: { layer: 'application', attempts: 1, foreignLayers: [], declared: 1 },
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

it('layers that are not ours count in the answers, and are refused where they cannot be', () => {
  const db = memory({ name: 'shop behind a gateway' })
  const foreignLayers = [
    { name: 'gateway', attempts: 2 },
    { name: 'driver', attempts: 3 },
  ]
  const pay = db.operation('pay-through-gateway', { ...base, attempts: 4, foreignLayers, run: () => 1 })
  expect(pay.answers.placement).toEqual({ layer: 'transaction', attempts: 4, foreignLayers, declared: 24 })
  const mail = leased('mail-through-gateway', {
    ...base,
    store: db,
    lease: '30s',
    recover: hold(),
    foreignLayers,
    run: () => 1,
  })
  expect(mail.answers.placement).toEqual({ layer: 'application', attempts: 1, foreignLayers, declared: 6 })
  for (const wrong of [{}, [{ name: 'sdk' }], [{ name: '', attempts: 2 }], [{ name: 'sdk', attempts: 0 }]]) {
    const options = { ...base, foreignLayers: wrong as never, run: () => 1 }
    const refused = expect.objectContaining({ code: 'OPERATION_INVALID' })
    expect(() => db.operation('refused', options)).toThrow(refused)
    expect(() => leased('refused', { ...options, store: db, lease: '30s', recover: hold() })).toThrow(refused)
  }
})
