import diagnostics from 'node:diagnostics_channel'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Key, mintKey, scope } from '../identity/index.js'
import { memory } from '../stores/memory/index.js'
import { type OperationMisjudgedEvent, operationMisjudged } from '../telemetry/index.js'
import { leased } from './leased/leased.js'
import { hold } from './leased/recovery.js'
import { fail } from './outcome.js'

let told: OperationMisjudgedEvent[] = []
const hear = (event: unknown): void => void told.push(event as OperationMisjudgedEvent)
beforeEach(() => {
  told = []
  diagnostics.subscribe(operationMisjudged.name, hear)
})
afterEach(() => diagnostics.unsubscribe(operationMisjudged.name, hear))

/** The same definition in both modes. The body throws the first time, before anything was sent. */
function operationOf(mode: 'atomic' | 'leased', terminal: (error: unknown) => ReturnType<typeof fail> | undefined) {
  const db = memory({ name: 'shop' })
  const thrown = new Error('no luck')
  let runs = 0
  const rest = { scope: () => scope('a'), key: (key: Key) => key, window: '1h', failures: ['declined'] } as const
  const shared = { ...rest, terminal: terminal as never }
  const first = (error: unknown): number => {
    runs += 1
    if (runs === 1) throw error
    return runs
  }
  const pay =
    mode === 'atomic'
      ? db.operation('pay', { ...shared, run: () => first(thrown) })
      : leased<Key, number, 'declined'>('pay', {
          ...shared,
          store: db,
          lease: '30s',
          recover: hold(),
          run: (lease) => first(lease.notSent(thrown)),
        })
  return { pay, thrown }
}

describe.each(['atomic', 'leased'] as const)('in %s mode', (mode) => {
  it.each([
    [
      'threw',
      () => {
        throw new TypeError('a mistake')
      },
    ],
    ['no-failure', () => 'declined' as never],
    // Where nobody heard of its end, this run would fail with an unhandled rejection.
    ['no-failure', () => Promise.reject(new Error('a mistake, later')) as never],
  ] as const)(
    'a terminal that is mistaken (%s) leaves the body’s error as it is, and is told',
    async (because, terminal) => {
      const { pay, thrown } = operationOf(mode, terminal)
      const key = mintKey()
      await expect(pay(key)).rejects.toBe(thrown)
      const mistake = because === 'threw' ? { because, error: new TypeError('a mistake') } : { because }
      expect(told).toEqual([{ domain: 'shop', operation: 'pay', mode, id: expect.any(String), ...mistake }])
      // Nothing was stored: the key is free.
      expect(await pay(key)).toBe(2)
    },
  )

  it('a terminal that knows the error makes a failure of it', async () => {
    const { pay } = operationOf(mode, () => fail('declined'))
    await expect(pay(mintKey())).rejects.toMatchObject({ code: 'OPERATION_FAILED', failure: { code: 'declined' } })
    expect(told).toEqual([])
  })
})
