import { describe, expect, it } from 'vitest'
import {
  busy,
  type Options,
  Says,
  settled,
  until,
  type World,
  world as worldOf,
} from '../../../../test/messaging/consumer/world.js'
import { currentIntent } from '../../../identity/index.js'
import { deadlineAfter, RepriseError, seededRandom } from '../../../kernel/index.js'
import { discard, transient } from '../../../retry/index.js'
import { type MemoryDomain, memory } from '../../../stores/memory/index.js'
import { manualClock } from '../../../testing/index.js'
import { Claims } from '../../claims.js'
import { type ClaimedLane, consume, type LaneEnd } from '../../index.js'

function world(options: Options = {}): World & { emit(...drafts: readonly [string, string][]): Promise<void> } {
  const clock = manualClock()
  const db = memory({ name: 'shop', clock })
  const made = worldOf({ from: db, clock, ...options }, { db })
  return {
    ...made,
    clock,
    drain: () => settled(clock, made.consumer.drain()),
    later: later(clock, made),
    emit: emitTo(db),
  }
}

const later =
  (clock: ReturnType<typeof manualClock>, { consumer }: World) =>
  async (ms: number): Promise<unknown> => {
    await clock.advance(ms)
    return settled(clock, consumer.drain())
  }

/** Emits messages of an id and a key, each in a transaction of its own. */
const emitTo =
  (db: MemoryDomain) =>
  async (...drafts: readonly [string, string][]): Promise<void> => {
    for (const [id, subject] of drafts) {
      await db.transact((tx) => tx.emit({ type: 'order.placed', id, subject, data: { of: id } }))
    }
  }

describe('a consumer of the outbox', () => {
  it('handles what was emitted before it was known and after, in the order of each key, once', async () => {
    const { emit, drain, effects, consumer } = world()
    await emit(['1', 'a'], ['2', 'b'], ['3', 'a'])
    await drain()
    expect(effects().filter((id) => id !== '2')).toEqual(['1', '3'])
    await emit(['4', 'a'], ['5', 'b'])
    await drain()
    await drain()
    expect([...effects()].sort()).toEqual(['1', '2', '3', '4', '5'])
    expect(consumer.counts).toMatchObject({ handled: 5, duplicates: 0, fenced: 0 })
  })

  it("reads the same with from: 'outbox', and two names each read all", async () => {
    const clock = manualClock()
    const db = memory({ name: 'shop', clock })
    await emitTo(db)(['1', 'a'], ['2', 'a'])
    for (const name of ['one', 'two']) {
      const seen: string[] = []
      const consumer = consume(db, { name, from: 'outbox', handle: (_tx, { id }) => seen.push(id), clock })
      await settled(clock, consumer.drain())
      expect(seen).toEqual(['1', '2'])
    }
  })

  it('takes more messages of a key than one claim has, each in a commit of its own', async () => {
    const { emit, drain, effects } = world({ batch: 3 })
    await emit(...Array.from({ length: 10 }, (_, index): [string, string] => [`${index}`, 'a']))
    await drain()
    expect(effects()).toEqual(Array.from({ length: 10 }, (_, index) => `${index}`))
  })

  it('holds a key behind a message that failed, and no other key; what was done before it stays done', async () => {
    const { emit, drain, later, effects, failing, calls } = world()
    failing.set('2', busy)
    await emit(['1', 'a'], ['2', 'a'], ['3', 'a'], ['4', 'b'])
    await drain()
    expect([...effects()].sort()).toEqual(['1', '4'])
    failing.clear()
    await later(1_000)
    expect(effects().filter((id) => id !== '4')).toEqual(['1', '2', '3'])
    expect(calls.filter((id) => id === '1')).toHaveLength(1)
  })

  it('parks a key behind a dead letter, and goes on in order after redrive, edit and discard', async () => {
    const decisions = [
      [{ is: 'redrive' }, ['1', '2', '3']],
      [{ is: 'edit', id: 'edited', codec: undefined, data: '{"of":"new"}' }, ['1', 'edited', '3']],
      [{ is: 'discard', reason: 'no' }, ['1', '3']],
    ] as const
    for (const [decision, expected] of decisions) {
      const { emit, drain, effects, failing, letters, db, consumer } = world({ attempts: 1 })
      failing.set('2', busy)
      await emit(['1', 'a'], ['2', 'a'], ['3', 'a'])
      await drain()
      expect(effects()).toEqual(['1'])
      expect(await letters()).toEqual([{ code: 'busy', state: 'open', parks: true }])
      failing.clear()
      const which = { reader: consumer.name, source: db.messages.source, id: '2' }
      const decided = { decision, actor: 'a person', reason: 'a test', inMs: 0 }
      expect(await db.messages.decide(which, decided, { deadline: deadlineAfter('1h', manualClock()) })).toBe(true)
      await drain()
      expect(effects()).toEqual(expected)
      expect(await letters()).toEqual([])
    }
  })

  it('passes over what is to be discarded, by its verdict', async () => {
    const { emit, drain, effects, failing, consumer } = world()
    failing.set('1', new Says(discard('old')))
    await emit(['1', 'a'], ['2', 'a'])
    await drain()
    expect(effects()).toEqual(['2'])
    expect(consumer.counts).toMatchObject({ discarded: 1, handled: 1 })
  })

  it('emits in the same commit, and those messages know what caused them', async () => {
    const clock = manualClock()
    const db = memory({ name: 'shop', clock })
    const intents: unknown[] = []
    const first = consume(db, {
      name: 'first',
      from: db,
      handle: async (tx, message) => {
        if (message.type !== 'order.placed') return
        intents.push(currentIntent()?.key)
        await tx.emit({ type: 'receipt.sent', id: `r${message.id}`, subject: message.subject as string, data: {} })
        if (message.id === '2') throw new TypeError('rolled back with its emit')
      },
      clock,
    })
    await emitTo(db)(['1', 'a'], ['2', 'b'])
    await settled(clock, first.drain())
    const emitted = db.rows('reprise_message').map(({ id, intent }) => [id, typeof intent])
    expect(emitted).toEqual([
      ['1', 'object'],
      ['2', 'object'],
      ['r1', 'string'],
    ])
    expect(new Set(intents).size).toBe(2)
  })

  it('is woken by a commit of its own process, long before it would look', async () => {
    const { emit, consumer, clock, effects } = world({ poll: '1h' })
    const stop = new AbortController()
    const running = consumer.run({ signal: stop.signal })
    await clock.advance(1)
    await emit(['1', 'a'])
    await until(clock, () => effects().length === 1)
    expect(clock.monotonicMs()).toBeLessThan(60_000)
    stop.abort()
    await settled(clock, running)
  })
})

describe('a consumer that lost its lane', () => {
  it('commits nothing: whoever has the lane now does', async () => {
    const clock = manualClock()
    const db = memory({ name: 'shop', clock })
    db.table('effect', { unique: [['n']] })
    await emitTo(db)(['1', 'a'])
    let n = 0
    // The lane is claimed by somebody else while the handler runs, as after a long stop of the process.
    const stolen = {
      ...db,
      messages: {
        ...db.messages,
        endIn: (async (tx: never, end: LaneEnd) =>
          db.messages.endIn(tx, { ...end, attempt: end.attempt - 1 })) as typeof db.messages.endIn,
      },
    }
    const consumer = consume(stolen, {
      name: 'receipts',
      from: stolen,
      handle: (tx, { id }) => tx.upsert('effect', { n: ++n, id }, ['n']),
      clock,
      lease: '1s',
    })
    await settled(clock, consumer.drain())
    expect(n).toBe(1)
    expect(db.rows('effect')).toEqual([])
    expect(consumer.counts).toMatchObject({ fenced: 1, handled: 0, failed: 0, parked: 0 })
  })
})

describe('a store that is away', () => {
  it('burns neither attempts nor claims: what was in hand is handled when it is back', async () => {
    const clock = manualClock()
    const db = memory({ name: 'shop', clock })
    db.table('effect', { unique: [['n']] })
    await emitTo(db)(['1', 'a'], ['2', 'a'])
    let isAway = false
    const gone = (): Promise<never> => Promise.reject(new RepriseError('STORE_UNREACHABLE', 'away'))
    const guarded =
      <Given extends unknown[], Result>(work: (...given: Given) => Promise<Result>) =>
      (...given: Given): Promise<Result> =>
        isAway ? gone() : work(...given)
    const { messages } = db
    const flaky = {
      ...db,
      transact: guarded(db.transact) as typeof db.transact,
      messages: {
        ...messages,
        claim: guarded(messages.claim),
        end: guarded(messages.end),
        extend: guarded(messages.extend),
      },
    }
    let n = 0
    const consumer = consume(flaky, {
      name: 'receipts',
      from: flaky,
      attempts: 1,
      crashes: 1,
      lease: '2s',
      handle: async (tx, { id }) => {
        n += 1
        // It goes away under the handler's feet, and stays away for longer than the lease.
        if (n === 1) {
          isAway = true
          throw new Says(transient('busy', 'no', { overload: true }))
        }
        await tx.upsert('effect', { n, id }, ['n'])
      },
      classify: (error) => (error instanceof Says ? error.verdict : undefined),
      clock,
    })
    const stop = new AbortController()
    const running = consumer.run({ signal: stop.signal })
    await clock.advance('10m')
    expect(consumer.counts.handled).toBe(0)
    isAway = false
    await until(clock, () => db.rows('effect').length === 2)
    stop.abort()
    const counts = await settled(clock, running)
    expect(counts).toMatchObject({ handled: 2, parked: 0 })
    expect(db.rows('effect').map(({ id }) => id)).toEqual(['1', '2'])
  })

  it('rejects a drain, and a run where no pause would help', async () => {
    const clock = manualClock()
    const db = memory({ name: 'shop', clock })
    const consumer = consume(db, { name: 'receipts', from: db, handle: () => undefined, clock })
    await db.close()
    await expect(consumer.drain()).rejects.toMatchObject({ code: 'STORE_CLOSED' })
    await expect(settled(clock, consumer.run({ signal: new AbortController().signal }))).rejects.toMatchObject({
      code: 'STORE_CLOSED',
    })
  })
})

describe('a message that ends its process', () => {
  // A process that claims lanes and is gone before it said how they ended, or while it ran the first one alone.
  async function died(
    db: MemoryDomain,
    clock: ReturnType<typeof manualClock>,
    lanes: number,
    runs: 'beside' | 'alone' = 'beside',
  ): Promise<number> {
    const reader = { name: 'receipts', kind: 'consumer', reads: 'outbox' } as const
    const settings = { reader, leaseMs: 1_000, storeLimitMs: 1_000, crashes: 3, clock, random: seededRandom(1) }
    const claims = new Claims(db.messages, settings)
    const { lanes: claimed } = await claims.claim(lanes, 1)
    if (runs === 'alone') expect(await claims.beginAlone(claimed[0] as ClaimedLane)).toBe(true)
    await clock.advance(1_001)
    return claimed.length
  }

  it('runs alone from then on, and each that was beside it too; nobody else is condemned', async () => {
    const clock = manualClock()
    const db = memory({ name: 'shop', clock })
    await emitTo(db)(['1', 'a'], ['2', 'b'], ['3', 'c'], ['4', 'd'])
    let beside = 0
    let mostBeside = 0
    const seen: string[] = []
    // The store in memory has one writer, so that handlers are counted from when they ask for their turn.
    const watched = {
      ...db,
      transact: (async (...given: Parameters<typeof db.transact>) => {
        beside += 1
        mostBeside = Math.max(mostBeside, beside)
        return db.transact(...given).finally(() => {
          beside -= 1
        })
      }) as typeof db.transact,
    }
    const consumer = consume(watched, {
      name: 'receipts',
      from: watched,
      crashes: 3,
      handle: (_tx, { id }) => seen.push(id),
      clock,
    })
    await db.messages.register(
      { name: 'receipts', kind: 'consumer', reads: 'outbox' },
      { deadline: deadlineAfter('1h', clock) },
    )
    // Many times three of them were in the hands of a process that died.
    for (let deaths = 0; deaths < 5; deaths += 1) expect(await died(db, clock, 3)).toBe(3)
    await settled(clock, consumer.drain())
    expect([...seen].sort()).toEqual(['1', '2', '3', '4'])
    expect(mostBeside).toBe(1)
    expect(consumer.counts).toMatchObject({ handled: 4, parked: 0 })
  })

  it('is begun when all that was claimed with it is given back, and nothing is claimed until it has ended', async () => {
    const clock = manualClock()
    const db = memory({ name: 'shop', clock })
    await emitTo(db)(['1', 'a'], ['2', 'b'], ['3', 'c'], ['4', 'd'])
    const limits = { deadline: deadlineAfter('1h', clock) }
    await db.messages.register({ name: 'receipts', kind: 'consumer', reads: 'outbox' }, limits)
    expect(await died(db, clock, 2)).toBe(2)
    let claims = 0
    const watched = {
      ...db,
      messages: {
        ...db.messages,
        claim: ((...given) => {
          claims += 1
          return db.messages.claim(...given)
        }) as typeof db.messages.claim,
      },
    }
    let go: () => void = () => undefined
    const seen: string[] = []
    const owned: unknown[] = []
    const consumer = consume(watched, {
      name: 'receipts',
      from: watched,
      handle: (_tx, { id }) => {
        seen.push(id)
        if (seen.length > 1) return undefined
        owned.push(...db.rows('reprise_lane').flatMap(({ key, owner }) => (owner === null ? [] : [key])))
        return new Promise<void>((resolve) => {
          go = resolve
        })
      },
      deadline: '1h',
      clock,
    })
    const running = consumer.drain()
    await until(clock, () => seen.length === 1)
    const before = claims
    await clock.advance('20s')
    expect([claims - before, seen.length, owned]).toEqual([0, 1, [seen[0] === '1' ? 'a' : 'b']])
    go()
    await settled(clock, running)
    expect([...seen].sort()).toEqual(['1', '2', '3', '4'])
    expect(consumer.counts).toMatchObject({ handled: 4, parked: 0 })
  })

  it('is not blamed for what happens while it waits for its turn', async () => {
    const clock = manualClock()
    const db = memory({ name: 'shop', clock })
    await emitTo(db)(['1', 'a'])
    const limits = { deadline: deadlineAfter('1h', clock) }
    await db.messages.register({ name: 'receipts', kind: 'consumer', reads: 'outbox' }, limits)
    expect(await died(db, clock, 1)).toBe(1)
    let isAway = true
    const flaky = {
      ...db,
      messages: {
        ...db.messages,
        // The note that it begins cannot be written for a while.
        end: (async (...given: Parameters<typeof db.messages.end>) => {
          if (isAway && given[0].some(({ then }) => then.is === 'hold')) throw new Error('away')
          return db.messages.end(...given)
        }) as typeof db.messages.end,
      },
    }
    const seen: string[] = []
    const consumer = consume(flaky, { name: 'receipts', from: flaky, handle: (_tx, { id }) => seen.push(id), clock })
    const stop = new AbortController()
    const running = consumer.run({ signal: stop.signal })
    await until(clock, () => consumer.counts.pauses > 2)
    expect(seen).toEqual([])
    const [lane] = db.rows('reprise_lane')
    expect(JSON.parse(String(lane?.['history']))).toMatchObject([{ what: 'suspected' }])
    isAway = false
    await until(clock, () => seen.length === 1)
    stop.abort()
    await settled(clock, running)
    expect(db.rows('reprise_lane')).toMatchObject([{ history: '', claims: 0, state: 0 }])
  })

  it('is a dead letter after so many, and its handler is not called', async () => {
    const clock = manualClock()
    const db = memory({ name: 'shop', clock })
    await emitTo(db)(['1', 'a'])
    const seen: string[] = []
    const consumer = consume(db, {
      name: 'receipts',
      from: db,
      crashes: 3,
      handle: (_tx, { id }) => seen.push(id),
      clock,
    })
    await db.messages.register(
      { name: 'receipts', kind: 'consumer', reads: 'outbox' },
      { deadline: deadlineAfter('1h', clock) },
    )
    expect(await died(db, clock, 1)).toBe(1)
    for (let deaths = 0; deaths < 3; deaths += 1) expect(await died(db, clock, 1, 'alone')).toBe(1)
    await settled(clock, consumer.drain())
    expect(seen).toEqual([])
    const [letter] = await db.messages.letters({ limit: 10 }, { deadline: deadlineAfter('1h', clock) })
    expect(letter).toMatchObject({ code: 'MESSAGE_KILLS', parks: true })
  })
})

it('extends its lease while a handler runs for longer than the lease', async () => {
  const clock = manualClock()
  const db = memory({ name: 'shop', clock })
  await emitTo(db)(['1', 'a'])
  let extended = 0
  const watched = {
    ...db,
    messages: {
      ...db.messages,
      // The store in memory has one writer, which the handler is: a store with rows would answer here.
      extend: async () => {
        extended += 1
        return true
      },
    },
  }
  const consumer = consume(watched, {
    name: 'receipts',
    from: watched,
    lease: '900ms',
    deadline: '20s',
    handle: () => new Promise((resolve) => clock.setTimer(5_000, () => resolve(undefined))),
    clock,
  })
  expect(await settled(clock, consumer.drain())).toMatchObject({ handled: 1, fenced: 0 })
  expect(extended).toBeGreaterThan(10)
})
