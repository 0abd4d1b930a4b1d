import diagnostics from 'node:diagnostics_channel'
import { describe, expect, it } from 'vitest'
import { type MemoryBroker, memoryBroker } from '../../brokers/memory/index.js'
import { deadlineAfter, eventLoopTurn, seededRandom, systemClock } from '../../kernel/index.js'
import { type MemoryDomain, memory } from '../../stores/memory/index.js'
import { type ManualClock, manualClock } from '../../testing/index.js'
import type { ClaimedLane, Message, Published, Publisher, RelayOptions } from '../index.js'
import { begunAlone } from '../suspicion.js'
import { type Relay, relay } from './relay.js'

interface World {
  readonly clock: ManualClock
  readonly db: MemoryDomain
  readonly broker: MemoryBroker
  readonly out: Relay
  emit(...messages: readonly (readonly [key: string, data: unknown])[]): Promise<readonly string[]>
  /** What is on the wire, as key and data. */
  wire(): readonly string[]
}

const limits = () => ({ deadline: deadlineAfter('1h', systemClock) })

function world(options: Partial<RelayOptions> = {}, more: { readonly order?: 'key' | 'none' } = {}): World {
  const clock = manualClock()
  const db = memory({ name: 'shop', clock })
  const broker = memoryBroker({ clock, ...more })
  const out = relay(db, { name: 'out', to: broker.publisher('shop'), random: seededRandom(1), ...options })
  return {
    clock,
    db,
    broker,
    out,
    emit: async (...messages) =>
      db.transact((tx) => tx.emit(messages.map(([key, data]) => ({ type: 'order.placed', key, data })))),
    wire: () => broker.published('shop').map(({ key, data }) => `${key}${String(data)}`),
  }
}

/** Lets the relay of a world work for a time. */
async function running({ clock, out }: World, work: () => Promise<void>): Promise<void> {
  const stop = new AbortController()
  const run = out.run({ signal: stop.signal })
  try {
    await clock.advance(1)
    await work()
  } finally {
    stop.abort()
    await clock.advance('1m')
    await run
  }
}

const heard = (channel: string): unknown[] => {
  const events: unknown[] = []
  diagnostics.subscribe(channel, (event) => events.push(event))
  return events
}

describe('a relay', () => {
  it('publishes what was emitted, as it was emitted, in order per key, and once', async () => {
    const w = world()
    const ids = await w.emit(['a', 1], ['b', 1], ['a', 2])
    await w.emit(['a', 3])
    expect(await w.out.drain()).toMatchObject({ published: 4, parked: 0, fenced: 0 })
    expect(w.wire().filter((text) => text.startsWith('a'))).toEqual(['a1', 'a2', 'a3'])
    expect(w.broker.published('shop').map(({ id }) => id)).toEqual(expect.arrayContaining([...ids]))
    const [first] = w.broker.published('shop').filter(({ key }) => key === 'a')
    expect(first).toMatchObject({ source: w.db.messages.source, type: 'order.placed', place: { number: 1 } })
    expect(await w.out.drain()).toMatchObject({ published: 4 })
    expect(w.wire()).toHaveLength(4)
  })

  it('finds what was emitted before it was known, more keys than a page', async () => {
    const w = world()
    for (let block = 0; block < 12; block += 1) {
      await w.emit(...Array.from({ length: 100 }, (_, index) => [`k${block * 100 + index}`, 1] as const))
    }
    expect(await w.out.drain()).toMatchObject({ published: 1_200 })
    expect(new Set(w.wire()).size).toBe(1_200)
  })

  it('leaves the other relays of its domain their own', async () => {
    const w = world()
    const other = relay(w.db, { name: 'other', to: w.broker.publisher('other'), types: ['order.*'] })
    await w.emit(['a', 1])
    await w.out.drain()
    await other.drain()
    expect([w.broker.published('shop').length, w.broker.published('other').length]).toEqual([1, 1])
  })

  it('passes over what types and where leave out', async () => {
    const where = ({ data }: Message) => data !== 2
    const w = world({ where, types: ['order.*', 'bill.sent'] })
    await w.emit(['a', 1], ['a', 2], ['a', 3])
    await w.db.transact((tx) => tx.emit({ type: 'billing', key: 'a', data: 4 }))
    await w.db.transact((tx) => tx.emit({ type: 'bill.sent', key: 'a', data: 5 }))
    expect(await w.out.drain()).toMatchObject({ published: 3, skipped: 2 })
    expect(w.wire()).toEqual(['a1', 'a3', 'a5'])
  })

  it('holds a delayed message until it is due, and nobody behind it', async () => {
    const w = world()
    await w.db.transact((tx) => tx.emit({ type: 'order.late', key: 'a', data: 'later', after: '10m' }))
    await w.emit(['a', 1])
    await w.out.drain()
    expect(w.wire()).toEqual(['a1'])
    await w.clock.advance('10m')
    await w.out.drain()
    expect(w.wire().map((text) => text.slice(-5))).toEqual(['a1', 'later'])
  })

  it('is woken by an emit, and needs no poll for it', async () => {
    const w = world({ poll: '1h' })
    await running(w, async () => {
      await w.emit(['a', 1])
      await eventLoopTurn()
      await w.clock.advance(1)
      expect(w.wire()).toEqual(['a1'])
    })
  })

  it('asks for what nobody told it of, and no more often than it was told', async () => {
    const w = world({ poll: '1s' })
    let claims = 0
    const { claim } = w.db.messages
    const counting = (...args: Parameters<typeof claim>) => {
      claims += 1
      return claim(...args)
    }
    Object.assign(w.db.messages, { claim: counting })
    await running(w, async () => {
      await w.clock.advance('100s')
      expect(claims).toBeGreaterThanOrEqual(100)
      expect(claims).toBeLessThanOrEqual(220)
    })
  })
})

describe('a message that the broker refuses', () => {
  it('is tried again later and then is a dead letter, and parks its key alone', async () => {
    const events = heard('reprise.relay.parked')
    const w = world({ attempts: 3 })
    w.broker.faults.refuses = ({ key, data }) => (key === 'a' && data === 2 ? 'it is ugly' : undefined)
    const [, ugly] = await w.emit(['a', 1], ['a', 2], ['a', 3], ['b', 1])
    expect(await w.out.drain()).toMatchObject({ published: 2, refused: 1, parked: 0 })
    await running(w, async () => {
      await w.clock.advance('10m')
    })
    expect(w.out.counts).toMatchObject({ published: 2, refused: 3, parked: 1, away: 0 })
    expect(w.wire()).toEqual(['a1', 'b1'])
    const letter = await w.db.messages.letter(
      { reader: 'out', source: w.db.messages.source, id: ugly as string },
      limits(),
    )
    expect(letter).toMatchObject({
      state: 'open',
      parks: true,
      code: 'MESSAGE_REFUSED',
      reason: 'MESSAGE_REFUSED: it is ugly',
    })
    expect(JSON.parse(letter?.history ?? '')).toHaveLength(3)
    expect(events).toEqual([
      { domain: 'shop', relay: 'out', source: '/shop', id: ugly, type: 'order.placed', code: 'MESSAGE_REFUSED' },
    ])
    await w.emit(['b', 2])
    await w.out.drain()
    expect(w.wire()).toEqual(['a1', 'b1', 'b2'])
  })

  const dead = async () => {
    const w = world({ attempts: 1 })
    w.broker.faults.refuses = ({ data }) => (data === 1 ? 'no' : undefined)
    const [id] = await w.emit(['a', 1], ['a', 2])
    await w.out.drain()
    w.broker.faults.refuses = undefined
    const which = { reader: 'out', source: w.db.messages.source, id: id as string }
    const decide = (decision: Parameters<typeof w.db.messages.decide>[1]['decision']) =>
      w.db.messages.decide(which, { decision, actor: 'ann', reason: 'mended', inMs: 0 }, limits())
    return { w, id, which, decide }
  }

  it('goes out under its id when it is redriven, before what waited behind it', async () => {
    const { w, id, which, decide } = await dead()
    expect(w.wire()).toEqual([])
    expect(await decide({ is: 'redrive' })).toBe(true)
    await w.out.drain()
    expect(w.broker.published('shop').map((message) => [message.id === id, message.data])).toEqual([
      [true, 1],
      [false, 2],
    ])
    expect(await w.db.messages.letter(which, limits())).toMatchObject({ state: 'closed' })
  })

  it('goes out with another id and other data when it is edited', async () => {
    const { w, which, decide } = await dead()
    await decide({ is: 'edit', id: 'derived', codec: undefined, data: '"mended"' })
    await w.out.drain()
    expect(w.wire()).toEqual(['amended', 'a2'])
    expect(w.broker.published('shop')[0]).toMatchObject({ id: 'derived', place: { number: 1 } })
    expect(await w.db.messages.letter(which, limits())).toMatchObject({ state: 'closed' })
  })

  it('goes out without data when it is discarded, at its place', async () => {
    const { w, id, decide } = await dead()
    await decide({ is: 'discard', reason: 'of no use' })
    await w.out.drain()
    expect(w.broker.published('shop')[0]).toMatchObject({
      id,
      data: undefined,
      discarded: 'of no use',
      place: { number: 1 },
    })
    expect(w.wire()[1]).toBe('a2')
  })

  it('is open again when it is refused again', async () => {
    const { w, which, decide } = await dead()
    await decide({ is: 'redrive' })
    w.broker.faults.refuses = () => 'still no'
    await w.out.drain()
    expect(await w.db.messages.letter(which, limits())).toMatchObject({
      state: 'open',
      reason: 'MESSAGE_REFUSED: still no',
    })
    expect(await decide({ is: 'redrive' })).toBe(true)
  })

  it('is one whose filter throws, or gives no answer', async () => {
    const w = world({
      attempts: 1,
      where: ({ data }) => {
        if (data === 2) throw new Error('of the filter')
        return data as boolean
      },
    })
    await w.emit(['a', true], ['a', 2], ['b', 'yes'])
    expect(await w.out.drain()).toMatchObject({ published: 1, parked: 2 })
    const letters = await w.db.messages.letters({ limit: 10 }, limits())
    expect(letters.map(({ code, reason }) => [code, reason])).toEqual(
      expect.arrayContaining([
        ['WHERE_FAILED', 'Error: of the filter'],
        ['WHERE_FAILED', 'where gave something other than true or false.'],
      ]),
    )
  })
})

describe('a broker that is away', () => {
  it('burns no attempts, is asked ever less, and gets everything in order when it is back', async () => {
    const paused = heard('reprise.relay.paused')
    const w = world({ attempts: 1 })
    w.broker.faults.isAway = true
    await w.emit(['a', 1], ['a', 2], ['b', 1])
    await running(w, async () => {
      await w.clock.advance('1h')
      const { away } = w.out.counts
      expect(away).toBeGreaterThan(50)
      expect(away).toBeLessThan(400)
      expect(w.out.counts).toMatchObject({ published: 0, refused: 0, parked: 0 })
      expect(paused[0]).toMatchObject({ domain: 'shop', relay: 'out', because: 'broker' })
      w.broker.faults.isAway = false
      await w.clock.advance('2m')
      expect(w.wire().filter((text) => text.startsWith('a'))).toEqual(['a1', 'a2'])
      expect(w.wire()).toHaveLength(3)
    })
    expect(await w.db.messages.letters({ limit: 10 }, limits())).toEqual([])
  })

  it('ends a drain, which says so', async () => {
    const w = world()
    w.broker.faults.isAway = true
    await w.emit(['a', 1])
    expect(await w.out.drain()).toMatchObject({ published: 0, away: 1, pauses: 1 })
  })

  it('that lost its answer gets the messages singly and again, under the same ids', async () => {
    const sizes: number[] = []
    const w = world()
    const counting = counted(w.broker.publisher('shop'), sizes)
    const out = relay(w.db, { name: 'counted', to: counting, random: seededRandom(2) })
    w.broker.faults.lostAnswers = 1
    await w.emit(['a', 1], ['b', 1], ['c', 1])
    await out.drain()
    await w.clock.advance('1m')
    expect(await out.drain()).toMatchObject({ published: 3, refused: 0 })
    expect(sizes).toEqual([3, 1, 1, 1])
    expect(w.wire()).toHaveLength(6)
    expect(new Set(w.broker.published('shop').map(({ id }) => id)).size).toBe(3)
    await w.emit(['a', 2], ['b', 2])
    await out.drain()
    expect(sizes.slice(4)).toEqual([2])
  })

  it('counts against a message that is never confirmed while others are, and not against those', async () => {
    const w = world({ attempts: 3 })
    const out = relay(w.db, {
      name: 'poisoned',
      to: answering(w.broker.publisher('shop'), (messages, answers) =>
        messages.some(({ key }) => key === 'poison')
          ? messages.map(() => ({ is: 'unknown', error: 'reset' }))
          : answers,
      ),
      attempts: 3,
      random: seededRandom(3),
    })
    await w.emit(['poison', 1], ['a', 1], ['b', 1])
    for (let round = 0; round < 20; round += 1) {
      await w.emit(['a', round + 2], ['b', round + 2])
      await out.drain()
      await w.clock.advance('2m')
    }
    expect(out.counts).toMatchObject({ refused: 3, parked: 1 })
    expect(await w.db.messages.letters({ reader: 'poisoned', limit: 10 }, limits())).toMatchObject([
      { code: 'MESSAGE_UNCONFIRMED', message: { key: 'poison' } },
    ])
    const first = [...new Set(w.wire().filter((text) => text.startsWith('a')))]
    expect(first).toEqual(Array.from({ length: 21 }, (_, index) => `a${index + 1}`))
  })

  it('is told from messages that are to blame, which hold up nobody else', async () => {
    const w = world()
    const to = answering(w.broker.publisher('shop'), (messages, answers) =>
      messages.some(({ key }) => key.startsWith('poison'))
        ? messages.map(() => ({ is: 'unknown', error: 'reset' }))
        : answers,
    )
    const out = relay(w.db, { name: 'poisoned', to, random: seededRandom(5) })
    await w.emit(['poison1', 1], ['poison2', 1], ['poison3', 1])
    await out.drain()
    await w.clock.advance('10s')
    await w.emit(['a', 1], ['b', 1])
    const { pauses } = out.counts
    expect(await out.drain()).toMatchObject({ published: 2, pauses })
  })

  it.each<[string, Publisher['publish']]>([
    ['throws', () => Promise.reject(new Error('of the publisher'))],
    [
      'throws at once',
      () => {
        throw new Error('of the publisher')
      },
    ],
    ['answers for too few', async () => []],
    ['answers with something else', async (messages) => messages.map(() => ({ is: 'maybe' }) as never)],
    ['never answers', () => new Promise(() => {})],
  ])('is what a publisher is that %s', async (_, publish) => {
    const events = heard('reprise.relay.misanswered')
    const w = world()
    const to: Publisher = { ...w.broker.publisher('shop'), publish }
    const out = relay(w.db, { name: 'broken', to, attempts: 1, random: seededRandom(4) })
    await w.emit(['a', 1])
    const drained = out.drain()
    await w.clock.advance('1m')
    expect(await drained).toMatchObject({ published: 0, away: 1, refused: 0, parked: 0 })
    expect(events).toMatchObject([{ relay: 'broken', messages: 1 }])
  })
})

describe('claims', () => {
  it('of a relay that died are taken over, one after the other, and a message that kills is a dead letter', async () => {
    const w = world({ crashes: 2 })
    await w.emit(['a', 1], ['a', 2], ['b', 1])
    const reader = { name: 'out', kind: 'relay', reads: 'outbox' } as const
    await w.db.messages.register(reader, limits())
    const query = { reader, owner: 'dead', leaseMs: 1_000, lanes: 10, perLane: 10 }
    expect((await w.db.messages.claim(query, limits())).lanes).toHaveLength(2)
    await w.clock.advance('2s')
    const sizes: number[] = []
    const out = relay(w.db, { name: 'out', to: counted(w.broker.publisher('shop'), sizes), crashes: 2 })
    expect(await out.drain()).toMatchObject({ published: 3, parked: 0 })
    expect(sizes).toEqual([1, 1, 1])
    await w.emit(['c', 1], ['c', 2])
    for (const deaths of [0, 1, 2]) {
      const [c] = (await w.db.messages.claim({ ...query, perLane: 1 }, limits())).lanes as [ClaimedLane]
      // The first of them had something else too.
      const history = deaths > 0 ? begunAlone(c.history, 0) : ''
      const then = { is: 'hold', forMs: 1_000, failures: 0, history } as const
      const claimed = { reader, key: 'c', owner: 'dead', attempt: c.attempt }
      expect(await w.db.messages.end([{ ...claimed, done: undefined, then }], limits())).toEqual([true])
      await w.clock.advance('2s')
    }
    expect(await out.drain()).toMatchObject({ published: 3, parked: 1 })
    expect(await w.db.messages.letters({ limit: 10 }, limits())).toMatchObject([
      { code: 'MESSAGE_KILLS', message: { key: 'c', place: { number: 1 } } },
    ])
  })

  it('that somebody else has by now are not ended, and counted', async () => {
    const w = world()
    const events = heard('reprise.relay.fenced')
    const reader = { name: 'slow', kind: 'relay', reads: 'outbox' } as const
    const to: Publisher = {
      ...w.broker.publisher('shop'),
      publish: async (messages, given) => {
        const answers = await w.broker.publisher('shop').publish(messages, given)
        w.clock.setWallMs(w.clock.wallMs() + 3_600_000)
        const query = { reader, owner: 'other', leaseMs: 60_000, lanes: 10, perLane: 10 }
        expect((await w.db.messages.claim(query, limits())).lanes).toHaveLength(1)
        return answers
      },
    }
    const out = relay(w.db, { name: 'slow', to })
    await w.emit(['a', 1])
    expect(await out.drain()).toMatchObject({ fenced: 1, published: 1 })
    expect(events).toMatchObject([{ relay: 'slow', attempt: 1 }])
    const [state] = (await w.db.messages.readers(limits())).filter(({ name }) => name === 'slow')
    expect(state).toMatchObject({ depth: 1 })
  })

  it('are not used when there is too little left of them', async () => {
    const w = world()
    let calls = 0
    const to: Publisher = {
      ...w.broker.publisher('shop'),
      publish: async (messages) => {
        calls += 1
        return messages.map(() => ({ is: 'confirmed' }))
      },
    }
    const { claim } = w.db.messages
    let blocked = true
    // The answer of the store is late by more than the lease leaves for the broker.
    Object.assign(w.db.messages, {
      claim: async (...args: Parameters<typeof claim>) => {
        const answer = await claim(...args)
        if (blocked && answer.lanes.length > 0) {
          blocked = false
          await w.clock.advance('25s')
          expect(calls).toBe(0)
        }
        return answer
      },
    })
    const out = relay(w.db, { name: 'blocked', to })
    await w.emit(['a', 1])
    expect(await out.drain()).toMatchObject({ published: 1 })
    expect(calls).toBe(1)
  })

  it('are freed by a relay that is stopped between two calls', async () => {
    const w = world()
    const stop = new AbortController()
    const to = answering(w.broker.publisher('shop'), (_, answers) => {
      stop.abort()
      return answers
    })
    const out = relay(w.db, { name: 'stopped', to: { ...to, manifest: { ...to.manifest, order: 'none' } } })
    await w.emit(['a', 1], ['a', 2])
    await out.drain({ signal: stop.signal })
    expect(out.counts).toMatchObject({ published: 1 })
    const next = relay(w.db, { name: 'stopped', to: w.broker.publisher('shop') })
    expect(await next.drain()).toMatchObject({ published: 1 })
    expect(w.wire()).toEqual(['a1', 'a2'])
  })
})

describe('a store that is away', () => {
  it('pauses a relay, which loses and burns nothing and marks what it has published', async () => {
    const w = world({ attempts: 1 })
    await w.emit(['a', 1], ['b', 1])
    const { end, extend, claim } = w.db.messages
    let isAway = false
    const away = async () => Promise.reject(new Error('the store is away'))
    Object.assign(w.db.messages, {
      end: (...args: Parameters<typeof end>) => (isAway ? away() : end(...args)),
      extend: (...args: Parameters<typeof extend>) => (isAway ? away() : extend(...args)),
      claim: (...args: Parameters<typeof claim>) => (isAway ? away() : claim(...args)),
    })
    const publisher = answering(w.broker.publisher('shop'), (_, answers) => {
      isAway = true
      return answers
    })
    const out = relay(w.db, { name: 'out', to: publisher, attempts: 1 })
    await running({ ...w, out }, async () => {
      await w.clock.advance('10s')
      expect(out.counts).toMatchObject({ published: 0, refused: 0, parked: 0 })
      expect(out.counts.pauses).toBeGreaterThan(1)
      isAway = false
      await w.clock.advance('1m')
    })
    expect(out.counts).toMatchObject({ published: 2, parked: 0 })
    expect(w.wire()).toHaveLength(2)
  })

  it('rejects a drain', async () => {
    const w = world()
    Object.assign(w.db.messages, { claim: () => Promise.reject(new Error('away')) })
    await expect(w.out.drain()).rejects.toThrow('away')
  })

  it('that was closed ends a run', async () => {
    const w = world()
    await w.db.close()
    await expect(w.out.run({ signal: new AbortController().signal })).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  })
})

describe('data', () => {
  it('that was erased leaves as a message without data', async () => {
    const w = world()
    await w.emit(['a', 1])
    Object.assign(w.db.messages, { dataOf: () => undefined })
    await w.out.drain()
    expect(w.broker.published('shop')).toMatchObject([{ discarded: 'erased', data: undefined }])
  })

  it('that cannot be read is a dead letter, and what comes before it leaves', async () => {
    const w = world()
    const { dataOf } = w.db.messages
    Object.assign(w.db.messages, {
      dataOf: (stored: Parameters<typeof dataOf>[0]) => {
        if (stored.data === '2') throw new Error('no key')
        return dataOf(stored)
      },
    })
    await w.emit(['a', 1], ['a', 2], ['a', 3])
    expect(await w.out.drain()).toMatchObject({ published: 1, parked: 1 })
    expect(await w.db.messages.letters({ limit: 10 }, limits())).toMatchObject([{ code: 'MESSAGE_UNREADABLE' }])
  })
})

describe('a definition', () => {
  const w = world()
  it.each<[string, object]>([
    ['name', { name: '' }],
    ['name', { name: 'x'.repeat(256) }],
    ['to', { to: {} }],
    ['types', { types: [] }],
    ['types', { types: ['a*b'] }],
    ['where', { where: true }],
    ['batch', { batch: 0 }],
    ['batch', { batch: 10_001 }],
    ['attempts', { attempts: 0 }],
    ['crashes', { crashes: 1.5 }],
    ['backoff', { backoff: 5 }],
    ['budget', { budget: {} }],
    ['breaker', { breaker: {} }],
    ['lease', { lease: '20s' }],
    ['lease', { lease: '30s', deadline: '25s' }],
    ['wher', { wher: () => true }],
  ])('with a wrong %s is refused', (option, given) => {
    const options = { name: 'r', to: w.broker.publisher('shop'), ...given } as RelayOptions
    const refused = expect.objectContaining({ code: 'ARGUMENT_INVALID', details: expect.objectContaining({ option }) })
    expect(() => relay(w.db, options)).toThrow(refused)
  })

  it('is refused for a domain without messages, and runs once at a time', async () => {
    expect(() => relay({} as never, { name: 'r', to: w.broker.publisher('shop') })).toThrow(/domain that has messages/)
    const stop = new AbortController()
    const out = relay(w.db, { name: 'once', to: w.broker.publisher('shop') })
    const run = out.run({ signal: stop.signal })
    await expect(out.drain()).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    stop.abort()
    await run
    await expect(w.db.transact(() => out.drain())).rejects.toMatchObject({ code: 'TRANSACTION_NESTED' })
  })
})

/** A publisher that notes how many messages it was given at a time. */
function counted(publisher: Publisher, sizes: number[]): Publisher {
  return answering(publisher, (messages, answers) => {
    sizes.push(messages.length)
    return answers
  })
}

/** A publisher whose answers go through a function. */
function answering(
  publisher: Publisher,
  change: (messages: readonly Message[], answers: readonly Published[]) => readonly Published[],
): Publisher {
  const { manifest } = publisher
  return { manifest, publish: async (messages, given) => change(messages, await publisher.publish(messages, given)) }
}
