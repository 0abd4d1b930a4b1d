import { describe, expect, it } from 'vitest'
import { messageOf, ScriptedSource } from '../../../../test/messaging/consumer/scripted-source.js'
import { aSecond, busy, Says, settled, until, world } from '../../../../test/messaging/consumer/world.js'
import { currentIntent, deriveKey, mintKey, withIntent } from '../../../identity/index.js'
import { type Clock, deadlineAfter, RepriseError } from '../../../kernel/index.js'
import { discard, failedBecause, permanent, transient } from '../../../retry/index.js'
import { memory } from '../../../stores/memory/index.js'
import { manualClock } from '../../../testing/index.js'
import { consume } from '../../index.js'

const acks = (count: number): unknown[] => Array.from({ length: count }, () => 'ack')
const how = ({ answered }: ScriptedSource): unknown[] => answered.map(({ with: answer }) => answer)

describe('what was handled before', () => {
  it('has its effect once, however often it is delivered, and each delivery is acked', async () => {
    const { source, consumer, effects, drain } = world()
    source.send(messageOf('1', 'a'), messageOf('1', 'a'), messageOf('2', 'b'), messageOf('1', 'a'))
    await drain()
    expect(effects()).toEqual(['1', '2'])
    expect(consumer.counts).toMatchObject({ handled: 2, duplicates: 2, failed: 0 })
    expect(how(source)).toEqual(acks(4))
  })

  it('is a mismatch with other content: a letter that parks nobody, counted apart', async () => {
    const { source, consumer, effects, drain, letters } = world()
    source.send(messageOf('1', 'a'), messageOf('1', 'a', { data: { of: 'somebody else' } }), messageOf('2', 'a'))
    await drain()
    expect(effects()).toEqual(['1', '2'])
    expect(consumer.counts).toMatchObject({ handled: 2, duplicates: 0, mismatches: 1, parked: 1 })
    expect(await letters()).toEqual([{ code: 'MESSAGE_MISMATCH', state: 'open', parks: false }])
    expect(how(source)).toEqual(acks(3))
  })

  it('is two messages where two sources use one id', async () => {
    const { source, effects, drain } = world()
    source.send(messageOf('1', 'a'), messageOf('1', 'a', { source: '/other' }))
    await drain()
    expect(effects()).toEqual(['1', '1'])
  })
})

describe('the lanes of what waits', () => {
  // A consumer that runs, and how often it has asked for lanes.
  const asking = () => {
    const clock = manualClock()
    const db = memory({ name: 'shop', clock })
    let claims = 0
    const { claim } = db.messages
    const counted: typeof claim = (...given) => {
      claims += 1
      return claim(...given)
    }
    const watched = { ...db, messages: { ...db.messages, claim: counted } } as typeof db
    const { source, consumer, failing, effects } = world({ clock, poll: '1h' }, { db: watched })
    const stop = new AbortController()
    const running = consumer.run({ signal: stop.signal })
    const over = async (): Promise<void> => {
      stop.abort()
      await settled(clock, running)
    }
    return { clock, source, consumer, failing, effects, claims: () => claims, over }
  }

  it('are not asked for after each message that was handled, nor after a duplicate', async () => {
    const { clock, source, consumer, claims, over } = asking()
    for (let sent = 0; sent < 20; sent += 1) {
      const number = Math.floor(sent / 2)
      source.send(messageOf(`m${number}`, `k${number}`))
      await until(clock, () => consumer.counts.handled + consumer.counts.duplicates === sent + 1)
    }
    expect(consumer.counts).toMatchObject({ handled: 10, duplicates: 10 })
    expect(claims()).toBeLessThan(5)
    await over()
  })

  it('are asked for at once where a message was put there, long before the poll', async () => {
    const { clock, source, failing, consumer, effects, over } = asking()
    failing.set('1', busy)
    source.send(messageOf('1', 'a'), messageOf('2', 'a'))
    await until(clock, () => consumer.counts.failed === 1 && consumer.counts.stored === 1)
    failing.clear()
    await clock.advance(2_000)
    await until(clock, () => effects().length === 2)
    expect(clock.monotonicMs()).toBeLessThan(60_000)
    expect(effects()).toEqual(['1', '2'])
    await over()
  })
})

describe('a handler that fails', () => {
  it('leaves nothing behind; the message rests, those behind it wait in the store, and all run in order', async () => {
    const { source, consumer, effects, drain, later, failing } = world()
    failing.set('1', busy)
    source.send(messageOf('1', 'a'), messageOf('2', 'a'), messageOf('3', 'b'), messageOf('4', 'a'))
    await drain()
    expect(effects()).toEqual(['3'])
    expect(consumer.counts).toMatchObject({ handled: 1, failed: 1, stored: 2 })
    // Nothing of it is left with the broker.
    expect(how(source)).toEqual(acks(4))
    failing.clear()
    await later(1_000)
    expect(effects()).toEqual(['3', '1', '2', '4'])
  })

  it('has its turn beside deliveries that take all slots all the time', async () => {
    const clock = manualClock()
    const db = memory({ name: 'shop', clock })
    const calls: string[] = []
    const handle = async (_tx: unknown, { id }: { readonly id: string }): Promise<void> => {
      calls.push(id)
      if (id === '1' && calls.length === 1) throw busy
      await new Promise<void>((resolve) => clock.setTimer(100, resolve))
    }
    const slow = { handle, concurrency: 1, inFlight: 4, clock }
    const { source, consumer } = world(slow, { db })
    const stop = new AbortController()
    const running = consumer.run({ signal: stop.signal })
    source.send(messageOf('1', 'a'))
    // When its repeat is due, two others are in line for the slot, and so it stays.
    for (let sent = 0; !calls.includes('1', 1); sent += 1) {
      if (sent === 100) throw new Error('It never has its turn.')
      source.send(messageOf(`other-${sent}`, `key-${sent}`))
      await until(clock, () => calls.length > sent - 1)
    }
    stop.abort()
    await settled(clock, running)
  })

  it('is a dead letter after so many attempts, and only its key waits for it', async () => {
    const { consumer, source, effects, drain, later, failing, letters, calls } = world({ attempts: 3 })
    failing.set('1', busy)
    source.send(messageOf('1', 'a'), messageOf('2', 'a'))
    await drain()
    await later(1_000)
    expect(await letters()).toEqual([])
    await later(1_000)
    expect(calls).toEqual(['1', '1', '1'])
    expect(await letters()).toEqual([{ code: 'busy', state: 'open', parks: true }])
    source.send(messageOf('3', 'a'), messageOf('4', 'b'))
    await later(60_000)
    expect(effects()).toEqual(['4'])
    expect(consumer.counts).toMatchObject({ failed: 3, parked: 1, stored: 2 })
  })

  it('runs what was stored behind it in order after a redrive, and after a discard', async () => {
    for (const decision of [{ is: 'redrive' }, { is: 'discard', reason: 'not wanted' }] as const) {
      const { source, effects, drain, failing, letters, decide } = world({ attempts: 1 })
      failing.set('1', busy)
      source.send(messageOf('1', 'a'), messageOf('2', 'a'), messageOf('3', 'a'))
      await drain()
      expect(effects()).toEqual([])
      failing.clear()
      expect(await decide('1', decision)).toBe(true)
      await drain()
      expect(effects()).toEqual(decision.is === 'redrive' ? ['1', '2', '3'] : ['2', '3'])
      expect(await letters()).toEqual([])
      // Neither comes back: it is processed, or was discarded.
      source.send(messageOf('1', 'a'))
      await drain()
      expect(effects()).toHaveLength(decision.is === 'redrive' ? 3 : 2)
    }
  })

  it('is a dead letter at once where nothing says that another try would help', async () => {
    const { source, drain, failing, letters, calls } = world()
    failing.set('1', new TypeError('no amount'))
    failing.set('2', 'a text')
    failing.set('3', Object.assign(new Error('refused'), { code: 'CARD_REFUSED' }))
    source.send(messageOf('1', 'a'), messageOf('2', 'b'), messageOf('3', 'c'))
    await drain()
    expect(calls).toHaveLength(3)
    expect((await letters()).map(({ code }) => code).sort()).toEqual(['CARD_REFUSED', 'TypeError', 'unclassified'])
  })

  it('is counted and passed over where its verdict is discard, thrown or returned', async () => {
    const { source, consumer, drain, failing, effects } = world()
    failing.set('1', new Says(discard('too-old')))
    source.send(messageOf('1', 'a'), messageOf('2', 'a'), messageOf('1', 'a'))
    await drain()
    expect(effects()).toEqual(['2'])
    expect(consumer.counts).toMatchObject({ discarded: 1, handled: 1, duplicates: 1 })

    const returning = world({ handle: () => failedBecause(discard('too-old')) })
    returning.source.send(messageOf('1', 'a'))
    await returning.drain()
    expect(returning.consumer.counts).toMatchObject({ discarded: 1, handled: 0 })
  })

  it('waits for as long as it is asked to, and for the longest where there is no budget left', async () => {
    const asked = world()
    asked.failing.set('1', new Says(transient('later', 'no', { retryAfterMs: 5_000 })))
    asked.source.send(messageOf('1', 'a'))
    await asked.drain()
    await asked.later(4_000)
    expect(asked.calls).toHaveLength(1)
    await asked.later(1_000)
    expect(asked.calls).toHaveLength(2)

    const none = { data: {} as never, level: () => 0, succeeded() {}, failed() {}, tryRepeat: () => false }
    const spared = world({ budget: none, backoff: { ...aSecond, data: { ...aSecond.data, capMs: 9_000 } } })
    spared.failing.set('1', busy)
    spared.source.send(messageOf('1', 'a'))
    await spared.drain()
    await spared.later(8_000)
    expect(spared.calls).toHaveLength(1)
    await spared.later(1_000)
    expect(spared.calls).toHaveLength(2)
  })

  it('stops the consumer where something is overloaded, and no attempt is counted', async () => {
    const { source, consumer, failing, clock, effects, calls } = world({ attempts: 2 })
    failing.set('1', new Says(transient('http-503', 'no', { overload: true, retryAfterMs: 2_000 })))
    const stop = new AbortController()
    const running = consumer.run({ signal: stop.signal })
    source.send(messageOf('1', 'a'))
    await until(clock, () => calls.length === 4)
    // It was not acked, nobody else was handled meanwhile, and it is no dead letter.
    expect(source.answered).toEqual([])
    expect(source.events.slice(0, 2)).toEqual(['pause', 'resume'])
    expect(consumer.counts.parked).toBe(0)
    failing.clear()
    await until(clock, () => effects().length === 1)
    stop.abort()
    expect(await settled(clock, running)).toMatchObject({ handled: 1, failed: 4, pauses: 4 })
  })
})

describe('a store that is away', () => {
  it('pauses the consumer: nothing is acked, no attempt is burnt, and all goes on when it is back', async () => {
    const clock = manualClock()
    const db = memory({ name: 'shop', clock })
    let isAway = true
    const flaky = {
      ...db,
      transact: ((...given: Parameters<typeof db.transact>) =>
        isAway
          ? Promise.reject(new RepriseError('STORE_UNREACHABLE', 'away'))
          : db.transact(...given)) as typeof db.transact,
    }
    const source = new ScriptedSource()
    const handled: string[] = []
    const consumer = consume(flaky, {
      name: 'receipts',
      from: source,
      attempts: 1,
      handle: (_tx, { id }) => handled.push(id),
      clock,
    })
    const stop = new AbortController()
    const running = consumer.run({ signal: stop.signal })
    source.send(messageOf('1', 'a'), messageOf('2', 'b'))
    await clock.advance('5m')
    expect(source.answered).toEqual([])
    expect(consumer.counts).toMatchObject({ handled: 0, failed: 0, parked: 0 })
    expect(consumer.counts.pauses).toBeGreaterThan(3)
    isAway = false
    await until(clock, () => handled.length === 2)
    stop.abort()
    await settled(clock, running)
    expect(how(source)).toEqual(acks(2))
  })

  it('leaves a failed message unacked where its failure cannot be written', async () => {
    const clock = manualClock()
    const db = memory({ name: 'shop', clock })
    let keeps = 0
    const messages = {
      ...db.messages,
      keep: ((...given: Parameters<typeof db.messages.keep>) => {
        keeps += 1
        return keeps < 3 ? Promise.reject(new Error('disk')) : db.messages.keep(...given)
      }) as typeof db.messages.keep,
    }
    const source = new ScriptedSource()
    const consumer = consume(
      { ...db, messages },
      {
        name: 'receipts',
        from: source,
        handle: () => {
          throw new TypeError('never')
        },
        clock,
      },
    )
    const stop = new AbortController()
    const running = consumer.run({ signal: stop.signal })
    source.send(messageOf('1', 'a'))
    await until(clock, () => keeps === 2)
    expect(source.answered).toEqual([])
    await until(clock, () => source.answered.length === 1)
    stop.abort()
    expect(await settled(clock, running)).toMatchObject({ parked: 1 })
  })
})

describe('what cannot be read', () => {
  it('is a dead letter with its text, acked', async () => {
    const { source, consumer, db, drain, letters } = world()
    source.send({ unreadable: 'It is no JSON.', raw: '{"half' }, { unreadable: 'It is no JSON.', raw: '{"half' })
    await drain()
    expect(consumer.counts).toMatchObject({ unreadable: 2 })
    expect(await letters()).toEqual([{ code: 'MESSAGE_UNREADABLE', state: 'open', parks: false }])
    const [letter] = await db.messages.letters({ limit: 1 }, { deadline: deadlineAfter('1d', manualClock()) })
    expect(letter?.message.data).toBe('{"half')
    expect(how(source)).toEqual(acks(2))
  })

  it('is a dead letter where its data is not as the schema of its type says; sound data is as the schema gives it', async () => {
    const seen: unknown[] = []
    const schema = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: async (value: unknown) =>
          Object(value).of === '1' ? { value: 'read' } : { issues: [{ message: 'of is not 1' }] },
      },
    }
    const { source, drain, letters, consumer } = world({
      schemas: { 'order.placed': schema },
      handle: (_tx, { data }) => seen.push(data),
    })
    source.send(messageOf('1', 'a'), messageOf('2', 'a'), messageOf('3', 'b', { type: 'other' }))
    await drain()
    expect(seen).toHaveLength(2)
    expect(seen).toEqual(expect.arrayContaining(['read', { of: '3' }]))
    expect(await letters()).toEqual([{ code: 'MESSAGE_INVALID', state: 'open', parks: true }])
    expect(consumer.counts).toMatchObject({ handled: 2, failed: 0, parked: 1 })
  })
})

describe("order 'gapless'", () => {
  const numbered = (id: string, number: number, epoch = 7) => messageOf(id, 'a', { place: { epoch, number } })

  it('handles what waits for a number once that has come', async () => {
    const { source, consumer, effects, drain } = world({ order: 'gapless', gapWait: '10s' })
    source.send(numbered('1', 1), numbered('3', 3), numbered('2', 2))
    await drain()
    expect(effects()).toEqual(['1', '2', '3'])
    expect(consumer.counts).toMatchObject({ gaps: 1, handled: 3 })
    expect(how(source)).toEqual(acks(3))
  })

  it('parks its key after a bounded wait, and goes on past the gap where a person says so', async () => {
    const { source, effects, drain, later, letters, decide } = world({ order: 'gapless', gapWait: '10s' })
    source.send(numbered('1', 1), numbered('3', 3), numbered('4', 4))
    await drain()
    await later(9_000)
    expect(await letters()).toEqual([])
    await later(1_500)
    expect(await letters()).toEqual([{ code: 'MESSAGE_GAP', state: 'open', parks: true }])
    expect(effects()).toEqual(['1'])
    await decide('3', { is: 'redrive' })
    await drain()
    expect(effects()).toEqual(['1', '3', '4'])
  })

  it('never takes a lower number for a duplicate: it is late, a letter and an alarm', async () => {
    const { source, consumer, effects, drain, letters } = world({ order: 'gapless' })
    source.send(numbered('5', 5), numbered('4', 4), numbered('5', 5))
    await drain()
    expect(effects()).toEqual(['5'])
    expect(consumer.counts).toMatchObject({ late: 1, duplicates: 1 })
    expect(await letters()).toEqual([{ code: 'MESSAGE_LATE', state: 'open', parks: false }])
  })

  it('refuses what is of an epoch that is over, and begins anew with a higher one', async () => {
    const { source, consumer, effects, drain, letters } = world({ order: 'gapless' })
    source.send(numbered('1', 1), numbered('2', 1, 8), numbered('3', 2, 7))
    await drain()
    expect(effects()).toEqual(['1', '2'])
    expect(consumer.counts).toMatchObject({ outdated: 1 })
    expect(await letters()).toEqual([{ code: 'MESSAGE_OUTDATED', state: 'open', parks: false }])
  })
})

describe("order 'none'", () => {
  it('lets a message pass one of its key that failed', async () => {
    const { source, effects, drain, failing } = world({ order: 'none' })
    failing.set('1', busy)
    source.send(messageOf('1', 'a'), messageOf('2', 'a'))
    await drain()
    expect(effects()).toEqual(['2'])
  })
})

describe('a message without data', () => {
  it('is passed over, also where it had to wait, and never meets the handler', async () => {
    const { source, consumer, effects, drain, later, failing } = world()
    failing.set('1', busy)
    const gone = (id: string) => messageOf(id, 'a', { data: undefined, discarded: 'not wanted' })
    source.send(messageOf('1', 'a'), gone('2'), messageOf('3', 'a'))
    await drain()
    failing.clear()
    await later(1_000)
    source.send(gone('4'))
    await drain()
    expect(effects()).toEqual(['1', '3'])
    expect(consumer.counts).toMatchObject({ handled: 2, discarded: 2 })
  })

  it('goes to a function of its own where there is one', async () => {
    const seen: unknown[] = []
    const { source, drain, consumer } = world({ discarded: (_tx, { id, discarded }) => seen.push([id, discarded]) })
    source.send(messageOf('1', 'a', { data: undefined, discarded: 'not wanted' }))
    await drain()
    expect(seen).toEqual([['1', 'not wanted']])
    expect(consumer.counts.handled).toBe(1)
  })

  it('is no mismatch where the message itself was handled after all', async () => {
    const { source, drain, consumer } = world()
    source.send(messageOf('1', 'a'), messageOf('1', 'a', { data: undefined, discarded: 'not wanted' }))
    await drain()
    expect(consumer.counts).toMatchObject({ handled: 1, duplicates: 1, mismatches: 0 })
  })
})

describe('deliveries of one key', () => {
  it('are handled one after the other, and take no transaction while they wait', async () => {
    const clock = manualClock()
    const db = memory({ name: 'shop', clock })
    let open = 0
    let mostOpen = 0
    const watched = {
      ...db,
      transact: (async (...given: Parameters<typeof db.transact>) => {
        open += 1
        mostOpen = Math.max(mostOpen, open)
        try {
          return await db.transact(...given)
        } finally {
          open -= 1
        }
      }) as typeof db.transact,
    }
    const source = new ScriptedSource()
    const seen: string[] = []
    const consumer = consume(watched, {
      name: 'receipts',
      from: source,
      handle: async (_tx, { id }) => {
        seen.push(id)
        await Promise.resolve()
      },
      clock,
    })
    source.send(...Array.from({ length: 20 }, (_, index) => messageOf(`${index}`, 'a')))
    await settled(clock, consumer.drain())
    expect(mostOpen).toBe(1)
    expect(seen).toEqual(Array.from({ length: 20 }, (_, index) => `${index}`))
  })
})

describe('what a handler is part of', () => {
  it('has a key of its own that is the same for every delivery, and nothing of whoever started the consumer', async () => {
    const keys: unknown[] = []
    const { source, drain, later, consumer } = world({
      handle: (_tx, { id }) => {
        keys.push([id, currentIntent()?.key, currentIntent()?.deadline, deriveKey('mail')])
        if (keys.length === 1) throw busy
      },
    })
    source.send(messageOf('1', 'a'))
    await withIntent({ key: mintKey(), deadline: deadlineAfter('1s') }, () => drain())
    await later(1_000)
    expect(keys).toHaveLength(2)
    expect(keys[0]).toEqual(keys[1])
    expect(keys[0]).toMatchObject(['1', expect.stringMatching(/^c1-/), undefined, expect.stringMatching(/^d1-/)])
    expect(consumer.counts.handled).toBe(1)
  })
})

describe('a message that ends its process', () => {
  it('is put into the inbox when it is delivered again, and runs alone', async () => {
    const { source, consumer, effects, drain } = world()
    const again = new ScriptedSource()
    again.send(messageOf('1', 'a'))
    await again.open(async () => {}, { inFlight: 10 })
    await Promise.resolve()
    again.drop()
    const second = world({}, { source: again })
    again.send(messageOf('2', 'b'))
    await second.drain()
    expect([...second.effects()].sort()).toEqual(['1', '2'])
    expect(how(again)).toEqual(acks(2))
    source.send(messageOf('9', 'z'))
    await drain()
    expect(effects()).toEqual(['9'])
    expect(consumer.counts.handled).toBe(1)
  })
})

it('a verdict of no repeat makes a dead letter of what could be repeated', async () => {
  const { source, drain, failing, letters } = world()
  failing.set('1', new Says(transient('pushback', 'no', { doNotRepeat: true })))
  failing.set('2', new Says(permanent('gone')))
  source.send(messageOf('1', 'a'), messageOf('2', 'b'))
  await drain()
  expect((await letters()).map(({ code }) => code).sort()).toEqual(['gone', 'pushback'])
})

it('a delivery that has every slot goes on while the loop over the lanes has nothing to do', async () => {
  const time = manualClock()
  let asked = 0
  const clock: Clock = {
    wallMs: () => time.wallMs(),
    setTimer: (...given) => time.setTimer(...given),
    monotonicMs() {
      asked += 1
      // A loop that never sleeps would keep this process from everything else, this test included.
      if (asked > 10_000) throw new Error('The loop over the lanes goes round without end.')
      return time.monotonicMs()
    },
  }
  const handle = () => new Promise((resolve) => setImmediate(resolve))
  const { source, consumer } = world({ concurrency: 1, clock, handle })
  const stop = new AbortController()
  const running = consumer.run({ signal: stop.signal })
  source.send(messageOf('1', 'a'), messageOf('2', 'b'))
  await until(time, () => consumer.counts.handled === 2)
  stop.abort()
  expect(await settled(time, running)).toMatchObject({ handled: 2, failed: 0 })
})
