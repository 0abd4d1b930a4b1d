import { describe, expect, it } from 'vitest'
import { EngineError, type Script, type ScriptedHandle, scripted } from '../../../test/transaction/scripted-engine.js'
import { settled } from '../../../test/transaction/scripted-world.js'
import { draftedRecord, type Engine, type Manifest, type Records, type StoredRecord } from '../../atomicity/index.js'
import { mintKey, scope } from '../../identity/index.js'
import { seededRandom } from '../../kernel/index.js'
import { manualClock } from '../../testing/index.js'
import { operationsOf } from '../operations.js'
import { fail } from '../outcome.js'

/** An engine on which somebody else holds the key: a claim waits as long as it may, then fails. */
function blockedWorld(script: Script, more: object = {}, manifest: Partial<Manifest> = {}) {
  const clock = manualClock()
  const waits: (number | undefined)[] = []
  const waiting = async (): Promise<never> => {
    const begun = inner.begun.at(-1)
    waits.push(begun?.claim?.waitMs)
    await new Promise<void>((resolve) => {
      clock.setTimer(begun?.claim?.waitMs ?? begun?.lockWaitMs ?? 0, resolve)
    })
    throw new EngineError('repeat')
  }
  const inner = scripted({ ...script, manifest, claim: script.claim ?? waiting })
  const records = { read: async () => ({ record: undefined, nowMs: 0 }) } as unknown as Records
  const engine: Engine<ScriptedHandle> = {
    ...inner,
    records,
    classify: (error, phase) => {
      const ruling = inner.classify(error, phase)
      return error instanceof EngineError ? { ...ruling, blocked: true } : ruling
    },
  }
  const { operation } = operationsOf(engine, { clock, random: seededRandom(1) })
  let runs = 0
  const pay = operation('pay', {
    scope: () => scope('shop'),
    key: () => mintKey(),
    window: '1h',
    run: (_tx, _input: object) => {
      runs += 1
      return runs
    },
    ...more,
  })
  const call = () => settled({ clock } as never, pay({}))
  const outcome = () => settled({ clock } as never, pay.outcome({}))
  return { call, outcome, clock, waits, begun: inner.begun, runs: () => runs }
}

describe('a key that somebody else holds in the store', () => {
  it('is waited for until the wait is over, by lock wait after lock wait, and nothing runs', async () => {
    const { call, clock, waits, runs } = blockedWorld({}, { wait: '5s', lockWait: '2s' })
    await expect(call()).rejects.toMatchObject({
      code: 'OPERATION_IN_FLIGHT',
      details: { retryable: true, certain: true },
      cause: expect.any(EngineError),
    })
    expect(clock.monotonicMs()).toBeGreaterThanOrEqual(5_000)
    expect(clock.monotonicMs()).toBeLessThan(5_100)
    expect(waits.slice(0, 2)).toEqual([undefined, undefined])
    expect(waits[2]).toBeLessThan(1_000)
    expect([waits.length, runs()]).toEqual([3, 0])
  })

  it('is told as being in flight also where the attempts are used up first', async () => {
    const { call, waits } = blockedWorld({}, { wait: '5s', lockWait: '1s', attempts: 2 })
    await expect(call()).rejects.toMatchObject({ code: 'OPERATION_IN_FLIGHT' })
    expect(waits).toHaveLength(2)
  })

  it('refuses at once who does not want to wait', async () => {
    const { call, clock, waits } = blockedWorld({}, { duplicates: 'refuse' })
    await expect(call()).rejects.toMatchObject({ code: 'OPERATION_IN_FLIGHT' })
    expect(waits).toEqual([25])
    expect(clock.monotonicMs()).toBeLessThan(50)
  })

  it('waits where the whole store is what is locked, since its own key may be free, and says that it is not certain', async () => {
    const { call, clock } = blockedWorld({}, { duplicates: 'refuse', wait: '2s' }, { refuse: 'coarse' })
    await expect(call()).rejects.toMatchObject({ code: 'OPERATION_IN_FLIGHT', details: { certain: false } })
    expect(clock.monotonicMs()).toBeGreaterThan(1_900)
  })

  it('is not what a lock in the body is: that is repeated, and its own error is shown', async () => {
    let runs = 0
    const statement = (): never => {
      throw new EngineError('repeat')
    }
    const run = async (tx: ScriptedHandle) => {
      runs += 1
      await tx.statement()
    }
    const { call } = blockedWorld({ claim: () => 'claimed', statement }, { attempts: 3, duplicates: 'refuse', run })
    await expect(call()).rejects.toBeInstanceOf(EngineError)
    expect(runs).toBe(3)
  })
})

describe('a commit whose answer was lost', () => {
  function lostWorld(found: Partial<StoredRecord>, own: boolean) {
    let commits = 0
    const commit = () => {
      commits += 1
      throw new EngineError('resolve')
    }
    const world = blockedWorld(
      {
        commit,
        claim: () => {
          if (commits === 0) return 'claimed'
          const { draft } = world.begun[0]?.claim ?? {}
          const drafted = draftedRecord(draft ?? { mode: 'atomic', token: '' }, 0, () => 1)
          const record = { ...drafted, state: 'succeeded', ...found, ...(own ? {} : { token: 'other' }) } as const
          return { record, nowMs: 0 }
        },
      },
      { largestOutcome: 10, failures: ['no'], run: () => (found.state === 'failed' ? fail('no') : 'x'.repeat(20)) },
    )
    return world
  }

  it('is found in the store, and is this call’s own: also one too large to keep is handed out whole', async () => {
    const { outcome } = lostWorld({ codec: 'tombstone', value: undefined }, true)
    expect(await outcome()).toEqual({ outcome: 'succeeded', value: 'x'.repeat(20), replayed: false })
    const failed = lostWorld({ state: 'failed', value: '{"code":"no"}' }, true)
    expect(await failed.outcome()).toMatchObject({ outcome: 'failed', failure: { code: 'no' }, replayed: false })
  })

  it('that turns out to be somebody else’s outcome is theirs', async () => {
    const { outcome } = lostWorld({ value: '"theirs"' }, false)
    expect(await outcome()).toEqual({ outcome: 'succeeded', value: 'theirs', replayed: true })
  })
})

it('each attempt gets a fresh copy of the input', async () => {
  const seen: unknown[] = []
  let commits = 0
  const commit = () => {
    commits += 1
    if (commits === 1) throw new EngineError('repeat')
  }
  const run = (_tx: unknown, input: { list?: number[] }) => {
    seen.push(structuredClone(input))
    input.list = [1]
  }
  const { call } = blockedWorld({ claim: () => 'claimed', commit }, { run })
  await call()
  expect(seen).toEqual([{}, {}])
})
