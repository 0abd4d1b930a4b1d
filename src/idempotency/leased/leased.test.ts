import { describe, expect, it } from 'vitest'
import { chargeOptions, code, type Order, type Receipt, world } from '../../../test/idempotency/leased-world.js'
import { isRepriseError } from '../../kernel/index.js'
import { fail, OperationFailedError } from '../outcome.js'
import { leased } from './leased.js'
import { hold, rerunKeyed } from './recovery.js'

const refused = () => Object.assign(new Error('connect'), { code: 'ECONNREFUSED', syscall: 'connect' })
const reset = () => Object.assign(new Error('reset'), { code: 'ECONNRESET' })
const states = (records: ReturnType<typeof world>['records']) =>
  [...records.committed.values()].map(({ state }) => state)

describe('a leased operation', () => {
  it('runs once, hands the same result to every repeat, and ends its timers', async () => {
    const { clock, records, store, order } = world()
    let runs = 0
    const charge = leased<Order, Receipt>(
      'charge',
      chargeOptions({
        store: store(),
        run: async (lease, { amount }) => {
          runs += 1
          return lease.effect('capture', () => ({ charge: amount }))
        },
      }),
    )
    const one = order()
    expect(await charge.outcome(one)).toEqual({ outcome: 'succeeded', value: { charge: 5 }, replayed: false })
    expect(await charge.outcome(one)).toEqual({ outcome: 'succeeded', value: { charge: 5 }, replayed: true })
    expect(await charge(one)).toEqual({ charge: 5 })
    expect(runs).toBe(1)
    expect([...records.committed.values()]).toMatchObject([
      { state: 'succeeded', mode: 'leased', operation: 'charge', value: '{"charge":5}', fence: 1, claims: 1 },
    ])
    expect(clock.pendingTimers).toBe(0)
  })

  it('refuses other content under the same key, also while it is in flight', async () => {
    const { store, order } = world()
    let finish = (): void => undefined
    const waiting = new Promise<void>((resolve) => {
      finish = resolve
    })
    const run = async (): Promise<Receipt> => {
      await waiting
      return { charge: 1 }
    }
    const charge = leased<Order, Receipt>('charge', chargeOptions({ store: store(), run }))
    const one = order()
    const first = charge(one)
    expect(await code(charge({ ...one, amount: 6 }))).toBe('OPERATION_MISMATCH')
    finish()
    await first
    expect(await code(charge({ ...one, amount: 6 }))).toBe('OPERATION_MISMATCH')
  })

  it('PT3: compares with what the input was before the body changed it', async () => {
    const { store, order } = world()
    const run = async (_lease: unknown, input: Order): Promise<Receipt> => {
      Object.assign(input, { amount: 999 })
      return { charge: 1 }
    }
    const charge = leased<Order, Receipt>('charge', chargeOptions({ store: store(), run }))
    const one = order()
    await charge({ ...one })
    expect(await charge.outcome(one)).toMatchObject({ replayed: true })
  })

  it('keeps its key out of the store, and gives each step one key in every run', async () => {
    const { records, store, order } = world()
    const keys: string[][] = []
    let runs = 0
    const charge = leased<Order, Receipt>(
      'charge',
      chargeOptions({
        store: store(),
        recover: rerunKeyed('1h'),
        run: async (lease) => {
          runs += 1
          const seen: string[] = []
          keys.push(seen)
          await lease.effect('reserve', ({ key }) => seen.push(key))
          await lease.effect('capture', ({ key }) => {
            seen.push(key)
            if (runs === 1) throw reset()
          })
          expect([lease.key('reserve'), lease.key('capture')]).toEqual(seen)
          return { charge: runs }
        },
      }),
    )
    const one = order()
    expect(await code(charge(one))).toBe('OPERATION_UNKNOWN')
    expect(await charge(one)).toEqual({ charge: 2 })
    expect(keys[0]).toEqual(keys[1])
    expect(new Set(keys[0]).size).toBe(2)
    expect(JSON.stringify([...records.committed])).not.toContain(one.key)
  })
})

describe('a final failure', () => {
  const failures = ['declined'] as const

  it.each([
    ['returned', async () => fail('declined', { why: 'limit' })],
    [
      'thrown',
      async () => {
        throw new OperationFailedError(fail('declined', { why: 'limit' }))
      },
    ],
    [
      'made of a thrown error',
      async () => {
        throw new Error('402')
      },
    ],
  ] as const)('that was %s is stored, and replayed by code and data', async (_how, run) => {
    const { store, order, records } = world()
    const charge = leased<Order, Receipt, 'declined'>(
      'charge',
      chargeOptions({
        store: store(),
        run,
        failures,
        terminal: (error) => ((error as Error).message === '402' ? fail('declined', { why: 'limit' }) : undefined),
      }),
    )
    const one = order()
    const first = await charge.outcome(one)
    expect(first).toMatchObject({ outcome: 'failed', failure: { code: 'declined', data: { why: 'limit' } } })
    expect(await charge.outcome(one)).toEqual({ ...first, replayed: true })
    await expect(charge(one)).rejects.toMatchObject({ code: 'OPERATION_FAILED', replayed: true })
    expect(states(records)).toEqual(['failed'])
  })

  it('with a code that is not registered leaves the outcome unknown: it cannot be told, and it may have happened', async () => {
    const { store, order, records } = world()
    const run = async () => fail('other') as never
    const charge = leased<Order, Receipt>('charge', chargeOptions({ store: store(), run }))
    await expect(charge(order())).rejects.toMatchObject({
      code: 'OPERATION_UNKNOWN',
      cause: { code: 'FAILURE_UNREGISTERED' },
    })
    expect([...records.committed.values()]).toMatchObject([{ state: 'unknown', because: 'FAILURE_UNREGISTERED' }])
  })
})

describe('what a throw means', () => {
  const thrownBy = (run: Parameters<typeof chargeOptions<never>>[0]['run']) => {
    const one = world()
    const charge = leased<Order, Receipt>('charge', chargeOptions({ store: one.store(), run }))
    return { ...one, charge }
  }

  it('frees the key where every call was proven unsent, and the caller gets its own error', async () => {
    const error = refused()
    let runs = 0
    const { charge, order, records } = thrownBy(async (lease) => {
      runs += 1
      if (runs > 1) return { charge: runs }
      return lease.effect('capture', () => Promise.reject(error))
    })
    const one = order()
    await expect(charge(one)).rejects.toBe(error)
    expect(records.committed.size).toBe(0)
    expect(await charge(one)).toEqual({ charge: 2 })
  })

  it.each([
    ['a call that may have arrived', async (lease: never) => effect(lease, 'a', reset())],
    ['no call at all, since something may have been sent by other means', async () => Promise.reject(refused())],
    [
      'a call that was unsent after one that was made',
      async (lease: never) => {
        await effect(lease, 'a')
        await effect(lease, 'b', refused())
      },
    ],
    [
      'a call that was still under way',
      async (lease: never) => {
        void effect(lease, 'a', new Promise(() => undefined))
        await Promise.resolve()
        throw refused()
      },
    ],
  ])('is unknown after %s', async (_what, run) => {
    const { charge, order, records } = thrownBy(run as never)
    const one = order()
    const error = await charge(one).catch((thrown: unknown) => thrown)
    expect(isRepriseError(error, 'OPERATION_UNKNOWN')).toBe(true)
    expect((error as Error).cause).toBeInstanceOf(Error)
    expect(states(records)).toEqual(['unknown'])
    expect(await code(charge(one))).toBe('OPERATION_UNKNOWN')
  })

  it('is unknown after a rejection without a reason too, which is not the loss of the claim', async () => {
    const { charge, order, records, clock } = thrownBy(() => Promise.reject())
    expect(await code(charge(order()))).toBe('OPERATION_UNKNOWN')
    expect([...records.committed.values()]).toMatchObject([{ state: 'unknown', because: 'unclassified' }])
    expect(clock.pendingTimers).toBe(0)
  })

  it('takes the word of the body that nothing was sent, unless a call was made', async () => {
    const said = thrownBy(async (lease) => {
      throw lease.notSent(new Error('not configured'))
    })
    await expect(said.charge(said.order())).rejects.toThrow('not configured')
    expect(said.records.committed.size).toBe(0)
    const wrong = thrownBy(async (lease) => {
      await lease.effect('a', () => 1)
      throw lease.notSent(new Error('not so'))
    })
    expect(await code(wrong.charge(wrong.order()))).toBe('OPERATION_UNKNOWN')
  })

  it('stays unknown where an earlier run may have had an effect, whatever a later one proves', async () => {
    const { store, order, records } = world()
    const errors = [reset(), refused()]
    const charge = leased<Order, Receipt>(
      'charge',
      chargeOptions({
        store: store(),
        recover: rerunKeyed('1h'),
        run: (lease) => lease.effect('a', () => Promise.reject(errors.shift())),
      }),
    )
    const one = order()
    expect(await code(charge(one))).toBe('OPERATION_UNKNOWN')
    expect(await code(charge(one))).toBe('OPERATION_UNKNOWN')
    expect(errors).toEqual([])
    expect([...records.committed.values()]).toMatchObject([{ state: 'unknown', claims: 2, because: 'ECONNREFUSED' }])
  })

  it('counts the failure of a call that was not awaited as the body’s', async () => {
    const { charge, order, records } = thrownBy(async (lease) => {
      void lease.effect('a', () => Promise.reject(reset()))
      return { charge: 1 }
    })
    expect(await code(charge(order()))).toBe('OPERATION_UNKNOWN')
    expect(states(records)).toEqual(['unknown'])
  })

  it('refuses a second call of one step, unless the first was proven unsent', async () => {
    const { charge, order } = thrownBy(async (lease) => {
      await expect(lease.effect('a', () => Promise.reject(refused()))).rejects.toThrow('connect')
      expect(await lease.effect('a', () => 'sent')).toBe('sent')
      expect(await code(lease.effect('a', () => expect.unreachable()))).toBe('STEP_INVALID')
      expect(await code(lease.effect('', () => expect.unreachable()))).toBe('STEP_INVALID')
      return { charge: 1 }
    })
    expect(await charge(order())).toEqual({ charge: 1 })
  })
})

describe('the definition', () => {
  const { store } = world()
  const run = async (): Promise<Receipt> => ({ charge: 1 })
  const define = (more: object) => () =>
    leased<Order, Receipt>('charge', { ...chargeOptions({ store: store(), run }), ...more } as never)

  it.each([
    ['RECOVERY_MISSING', { recover: undefined }],
    ['RECOVERY_MISSING', { recover: undefined, reversibility: 'compensable' }],
    ['RECOVERY_MISSING', { recover: undefined, reversibility: 'irreversible' }],
    ['WINDOW_SHORTER_THAN_LEASE', { window: '29s' }],
    ['WINDOW_SHORTER_THAN_LEASE', { recover: rerunKeyed('32s') }],
    ['WINDOW_SHORTER_THAN_HORIZON', { retryHorizon: '25h' }],
    ['DURATION_INVALID', { lease: '1ms' }],
    ['DURATION_INVALID', { lease: '30 seconds' }],
    ['OPERATION_INVALID', { leftForCall: '21s' }],
    ['OPERATION_INVALID', { alowance: '2s' }],
    ['DURATION_INVALID', { lookAfter: 'soon' }],
    ['SCOPE_MISSING', { scope: undefined }],
    ['OPERATION_INVALID', { key: undefined }],
    ['OPERATION_INVALID', { run: undefined }],
    ['OPERATION_INVALID', { store: {} }],
    ['OPERATION_INVALID', { recover: 'hold' }],
    ['OPERATION_INVALID', { recover: null }],
    ['OPERATION_INVALID', { recover: { rule: {} } }],
    ['OPERATION_INVALID', { recover: { rule: { kind: 'resolve' } } }],
    ['OPERATION_INVALID', { recover: { rule: { kind: 'rerun' } } }],
    ['OPERATION_INVALID', { fields: { only: ['/amount'] }, content: 'none' }],
    ['OPERATION_INVALID', { duplicates: 'both' }],
  ])('is refused with %s for %j', (refusal, more) => {
    expect(define(more)).toThrow(expect.objectContaining({ code: refusal }))
  })

  it('is refused without a name or options, and that is what is said', () => {
    for (const [name, options, option] of [
      ['charge', undefined, 'options'],
      ['', {}, 'name'],
    ] as const) {
      expect(() => leased(name, options as never)).toThrow(
        expect.objectContaining({ code: 'OPERATION_INVALID', details: { option } }),
      )
    }
  })

  it('needs no recovery where a repeat changes nothing, and gives its answers', () => {
    expect(define({ recover: undefined, reversibility: 'repeatable' })().answers).toMatchObject({
      name: 'charge',
      mode: 'leased',
      rung: 'key',
      reversibility: 'repeatable',
      leaseMs: 30_000,
      recovery: { kind: 'rerun' },
      domain: { name: 'test', engine: 'memory', holds: 'marker' },
    })
    expect(define({ recover: hold() })().answers.recovery).toEqual({ kind: 'hold' })
  })
})

function effect(lease: never, step: string, outcome: unknown = 1): Promise<unknown> {
  const { effect: make } = lease as { effect: (step: string, call: () => unknown) => Promise<unknown> }
  return make.call(lease, step, () => (outcome instanceof Error ? Promise.reject(outcome) : outcome))
}
