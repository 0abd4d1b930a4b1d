import { describe, expect, it } from 'vitest'
import { messageOf, ScriptedSource } from '../../../test/messaging/consumer/scripted-source.js'
import { aSecond, Says, settled } from '../../../test/messaging/consumer/world.js'
import { fail, happened, hold, type Lease, rerunKeyed, resolve } from '../../idempotency/index.js'
import { deadlineAfter, RepriseError } from '../../kernel/index.js'
import { discard, failedBecause, permanent, transient } from '../../retry/index.js'
import { type MemoryDomain, memory } from '../../stores/memory/index.js'
import { type ManualClock, manualClock } from '../../testing/index.js'
import { type ConsumeLeasedOptions, consumeLeased, type LeasedConsumer } from '../index.js'
import { effectEnding } from './consume-leased.js'
import { Fenced } from './failure.js'

type Options = Partial<ConsumeLeasedOptions<never>>

interface World {
  readonly db: MemoryDomain
  readonly clock: ManualClock
  readonly consumer: LeasedConsumer
  /** What left the process: the id of a message, and the key that went with it. */
  readonly sent: (readonly [id: string, key: string])[]
  /** What is thrown after an effect was sent, by the id of the message; once. */
  readonly failing: Map<string, unknown>
  emit(...messages: readonly (readonly [id: string, key: string])[]): Promise<void>
  drain(): Promise<unknown>
  later(ms: number): Promise<unknown>
  letters(): Promise<readonly string[]>
}

function world(options: Options = {}): World {
  const clock = manualClock()
  const db = memory({ name: 'shop', clock })
  const sent: (readonly [string, string])[] = []
  const failing = new Map<string, unknown>()
  const consumer = consumeLeased(db, {
    name: 'mail',
    from: 'outbox',
    recover: rerunKeyed('1d'),
    lease: '5s',
    backoff: aSecond,
    classify: (error) => (error instanceof Says ? error.verdict : undefined),
    handle: (lease: Lease, { id }: { readonly id: string }) =>
      lease.effect('send', ({ key }) => {
        sent.push([id, key])
        const error = failing.get(id)
        failing.delete(id)
        if (error !== undefined) throw error
      }),
    ...(options as object),
  } as ConsumeLeasedOptions<never> as never)
  const drain = (): Promise<unknown> => settled(clock, consumer.drain())
  return {
    db,
    clock,
    consumer,
    sent,
    failing,
    drain,
    emit: async (...messages) => {
      for (const [id, subject] of messages) {
        await db.transact((tx) => tx.emit({ type: 'order.placed', id, subject, data: { of: id } }))
      }
    },
    later: async (ms) => {
      await clock.advance(ms)
      return drain()
    },
    letters: async () =>
      (await db.messages.letters({ limit: 10 }, { deadline: deadlineAfter('1h', clock) })).map(
        ({ message, code }) => `${message.id} ${code}`,
      ),
  }
}

const ids = ({ sent }: World): readonly string[] => sent.map(([id]) => id)
const keys = ({ sent }: World): number => new Set(sent.map(([, key]) => key)).size
const lost = new Says(transient('reset', 'maybe'))

describe('a message with an effect outside of the store', () => {
  it('has it once, in the order of its key, under a key of its own', async () => {
    const w = world()
    await w.emit(['1', 'a'], ['2', 'a'], ['3', 'b'])
    await w.drain()
    await w.drain()
    expect(ids(w).filter((id) => id !== '3')).toEqual(['1', '2'])
    expect([w.sent.length, keys(w)]).toEqual([3, 3])
    expect(w.consumer.counts).toMatchObject({ handled: 3, failed: 0 })
  })

  it('of a source is acknowledged after its outcome is recorded, and a duplicate calls nobody', async () => {
    const source = new ScriptedSource()
    const seen: unknown[] = []
    const w = world({
      from: source,
      handle: async (lease) => {
        await lease.effect('send', () => seen.push('sent'))
        seen.push(['answered', source.answered.length])
      },
    })
    source.send(messageOf('1', 'a'), messageOf('1', 'a'), messageOf('2', 'a'))
    await w.drain()
    expect(seen).toEqual(['sent', ['answered', 0], 'sent', ['answered', 2]])
    expect(source.answered.map(({ with: how }) => how)).toEqual(['ack', 'ack', 'ack'])
    expect(w.consumer.counts).toMatchObject({ handled: 2, duplicates: 1 })
    expect(await w.db.lookup(w.consumer.which(messageOf('1', 'a')))).toMatchObject({ state: 'succeeded' })
  })

  it('has it once where the process dies after its outcome is recorded', async () => {
    const w = world()
    await w.emit(['1', 'a'])
    const { endIn } = w.db.messages
    let died = 0
    // What the commit was to say is rolled back, as when the process and its connection are gone.
    Object.assign(w.db.messages, { endIn: async () => died++ > 0 })
    await w.drain()
    expect([died, ids(w), w.consumer.counts.handled]).toEqual([1, ['1'], 0])
    Object.assign(w.db.messages, { endIn })
    await w.later(10_000)
    expect([died, ids(w), w.consumer.counts.handled]).toEqual([1, ['1'], 1])
  })

  it('is passed over where it was discarded', async () => {
    const source = new ScriptedSource()
    const w = world({ from: source })
    source.send(messageOf('1', 'a', { data: undefined, discarded: 'no' }))
    await w.drain()
    expect([ids(w), w.consumer.counts.discarded]).toEqual([[], 1])
  })
})

describe('an effect that may have happened', () => {
  it('is sent again under the same key with rerunKeyed, and those behind it wait', async () => {
    const w = world()
    w.failing.set('1', lost)
    await w.emit(['1', 'a'], ['2', 'a'], ['3', 'b'])
    await w.drain()
    expect([...ids(w)].sort()).toEqual(['1', '3'])
    await w.later(40_000)
    expect(ids(w).filter((id) => id !== '3')).toEqual(['1', '1', '2'])
    expect(keys(w)).toBe(3)
    expect(await w.letters()).toEqual([])
  })

  it('is asked for with resolve, and not sent again where it happened', async () => {
    const asked: unknown[] = []
    const w = world({
      recover: resolve(({ input }) => {
        asked.push((input as { readonly id: string } | undefined)?.id)
        return happened(null)
      }),
    })
    w.failing.set('1', lost)
    await w.emit(['1', 'a'])
    await w.drain()
    await w.later(40_000)
    expect([ids(w), asked, w.consumer.counts.handled]).toEqual([['1'], ['1'], 1])
  })

  it('is a dead letter with hold; what a person settles is done by a redrive, and nobody is called', async () => {
    const w = world({ recover: hold() })
    w.failing.set('1', lost)
    await w.emit(['1', 'a'], ['2', 'a'])
    await w.drain()
    await w.later(60_000)
    expect([ids(w), await w.letters()]).toEqual([['1'], ['1 OPERATION_UNKNOWN']])
    const which = { source: w.db.messages.source, id: '1' }
    await w.db.settle(w.consumer.which(which), happened(null), { reason: 'it was there', actor: 'ada' })
    const decided = { decision: { is: 'redrive' }, actor: 'ada', reason: 'settled', inMs: 0 } as const
    const limits = { deadline: deadlineAfter('1h', w.clock) }
    expect(await w.db.messages.decide({ reader: 'mail', ...which }, decided, limits)).toBe(true)
    await w.drain()
    expect([ids(w), await w.letters()]).toEqual([['1', '2'], []])
  })
})

describe('verdicts', () => {
  it.each([
    ['transient', new Says(transient('busy', 'no')), ['1', '1', '2'], []],
    ['permanent', new Says(permanent('gone', 'no')), ['1'], ['1 gone']],
    ['discard', new Says(discard('old')), ['1', '2'], []],
  ])('on what was not sent are those of consume: %s', async (_name, error, expected, letters) => {
    const w = world({
      handle: (lease, { id }) => {
        w.sent.push([id, ''])
        const thrown = w.failing.get(id)
        w.failing.delete(id)
        if (thrown !== undefined) throw lease.notSent(thrown)
      },
    })
    w.failing.set('1', error)
    await w.emit(['1', 'a'], ['2', 'a'])
    await w.drain()
    await w.later(2_000)
    expect([ids(w), await w.letters()]).toEqual([expected, letters])
  })

  it('may be returned, and what failed for good is a dead letter of its code', async () => {
    const w = world({
      failures: ['REFUSED'],
      handle: (_lease, { id }) => {
        w.sent.push([id, ''])
        if (id === '1') return fail('REFUSED', { message: 'no such address' })
        return w.sent.length < 3 ? failedBecause(transient('busy', 'no')) : undefined
      },
    })
    await w.emit(['1', 'a'], ['2', 'b'])
    await w.drain()
    await w.later(2_000)
    expect([...ids(w)].sort()).toEqual(['1', '2', '2'])
    expect(await w.letters()).toEqual(['1 REFUSED'])
  })

  it('on an operation that failed: whose fault it is', () => {
    const none = new AbortController().signal
    const of = (error: unknown, kind: 'rerun' | 'resolve' | 'hold' = 'rerun', isHandlers = false) =>
      effectEnding(error, isHandlers, () => undefined, { kind }, none)
    expect(of(new Fenced()).is).toBe('fenced')
    expect(of(new RepriseError('OPERATION_IN_FLIGHT', 'x')).is).toBe('busy')
    expect(of(new RepriseError('LEASE_LOST', 'x')).is).toBe('busy')
    expect(of(new RepriseError('OUTCOME_UNREADABLE', 'x'))).toMatchObject({ is: 'refused', code: 'OUTCOME_UNREADABLE' })
    expect(of(new RepriseError('STORE_UNREACHABLE', 'x')).is).toBe('away')
    expect(of(new Error('of a driver')).is).toBe('away')
    expect(of(new TypeError('x'), 'rerun', true)).toMatchObject({ is: 'failed', verdict: { help: 'permanent' } })
    const unknown = new RepriseError('OPERATION_UNKNOWN', 'x', { cause: new TypeError('of the handler') })
    expect(of(unknown, 'rerun')).toMatchObject({ is: 'failed', code: 'TypeError' })
    expect(of(unknown, 'resolve')).toMatchObject({ is: 'failed', verdict: { help: 'transient' } })
    expect(of(unknown, 'hold')).toMatchObject({ is: 'failed', verdict: { help: 'permanent' } })
  })
})

describe('options that cannot hold are refused:', () => {
  it.each<[string, Options & Record<string, unknown>, string]>([
    ['no recovery', { recover: undefined as never }, 'RECOVERY_MISSING'],
    ['no handler', { handle: undefined as never }, 'ARGUMENT_INVALID'],
    ['a name that is no operation’s', { name: 'with spaces' }, 'ARGUMENT_INVALID'],
    ['an option of consume that has no meaning here', { discarded: () => undefined }, 'ARGUMENT_INVALID'],
    ['an unknown option', { recovery: hold() }, 'ARGUMENT_INVALID'],
    ['a receiver that forgets too soon', { recover: rerunKeyed('1s'), lease: '30s' }, 'WINDOW_SHORTER_THAN_LEASE'],
  ])('%s', (_name, options, code) => {
    expect(() => world(options)).toThrow(expect.objectContaining({ code }))
  })
})
