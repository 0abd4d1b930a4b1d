import { describe, expect, it } from 'vitest'
import { type DrillOptions, type DrillViolationEvent, drill } from '../../drill/index.js'
import { type Key, mintKey, scope } from '../../identity/index.js'
import { type MemoryDomain, memory } from '../../stores/memory/index.js'
import { manualClock } from '../../testing/index.js'
import { begin, fail, leased, rerunKeyed } from '../index.js'

interface Order {
  readonly key: Key
  amount: number
}

const identity = { scope: () => scope('shop'), key: ({ key }: Order) => key, window: '24h' } as const
const order = (): Order => ({ key: mintKey(), amount: 5 })

/** A domain in which each call is repeated, on a clock that is moved by hand. */
function world(more: Partial<DrillOptions> = {}) {
  const clock = manualClock({ wallMs: 1_700_000_000_000 })
  const violations: DrillViolationEvent[] = []
  const drilled = drill({ oneIn: 1, onViolation: (violation) => violations.push(violation), ...more })
  const db = memory({ name: 'shop', clock, drill: drilled })
  db.table('effect', { unique: [['n']] })
  const later = async () => {
    await clock.advance('1s')
    return drilled.settled()
  }
  const effects = () => db.rows('effect').length
  return { clock, db, drilled, violations, later, effects, codes: () => violations.map(({ code }) => code) }
}

const recordsOf = ({ records }: MemoryDomain) =>
  (records as unknown as { committed: Map<string, object> }).committed.size

let number = 0
const paying = (db: MemoryDomain, more: object = {}) =>
  db.operation('pay', {
    ...identity,
    run: async (tx, { amount }: Order) => {
      number += 1
      await tx.insertOnce('effect', { n: number }, ['n'])
      return { receipt: number, amount }
    },
    ...more,
  })

describe('an atomic operation', () => {
  it('agrees, whatever the caller does to its input and its result', async () => {
    const { db, later, effects, violations } = world()
    const pay = paying(db)
    const input = order()
    const result = await pay(input)
    input.amount = 99
    ;(result as { receipt: number }).receipt = -1
    expect(await later()).toMatchObject({ agreed: 1, violations: 0 })
    expect([violations, effects()]).toEqual([[], 1])
  })

  it('agrees on final failures, returned and thrown, and on a repeat of the caller’s own', async () => {
    const { db, later } = world()
    const options = { ...identity, failures: ['declined'] } as const
    const returns = db.operation('returns', { ...options, run: () => fail('declined', { by: 'bank' }) })
    const throws = db.operation('throws', {
      ...options,
      terminal: () => fail('declined', { by: 'bank' }),
      run: () => {
        throw new Error('bank')
      },
    })
    const input = order()
    await returns.outcome(input)
    await throws.outcome(input)
    await throws(input).catch(() => undefined)
    expect(await later()).toMatchObject({ agreed: 3, violations: 0 })
  })

  // The mistakes that people make, each of which a client's repeat would have met in production.
  it.each([
    ['a scope that is minted', { scope: () => scope(mintKey()) }, 'DRILL_EXECUTED'],
    ['a key that is minted', { key: () => mintKey() }, 'DRILL_EXECUTED'],
    [
      'a key that is minted, and every error taken for final',
      { key: () => mintKey(), failures: ['no'], terminal: () => fail('no') },
      'DRILL_EXECUTED',
    ],
    ['content with a number of its own', { content: () => ({ value: Math.random() }) }, 'DRILL_REFUSED'],
    [
      'a codec that is not faithful and says so',
      { codec: { name: 'lossy', faithful: true, encode: () => '', decode: () => ({ receipt: 0 }) } },
      'DRILL_DIFFERENT',
    ],
    [
      'a codec that cannot read what it wrote',
      {
        codec: {
          name: 'broken',
          faithful: true,
          encode: () => '',
          decode: () => {
            throw new Error('no')
          },
        },
      },
      'DRILL_REFUSED',
    ],
  ])('is found with %s, and has no second effect', async (_mistake, more, code) => {
    const { db, later, effects, codes } = world()
    await paying(db, more)(order())
    expect(await later()).toMatchObject({ agreed: 0, violations: 1 })
    expect([codes(), effects()]).toEqual([[code], 1])
    expect(recordsOf(db)).toBe(1)
  })

  it('is found with a key that is made of the time', async () => {
    const { db, clock, later, codes, effects } = world()
    await paying(db, { key: () => `order-at-${clock.wallMs()}` as Key })(order())
    await later()
    expect([codes(), effects()]).toEqual([['DRILL_EXECUTED'], 1])
  })

  it('whose body repeats an effect outside of its transaction is found by its count', async () => {
    let mails = 0
    const { db, later, violations } = world({ effects: () => mails })
    let runs = 0
    const pay = db.operation('pay', {
      ...identity,
      run: async () => {
        mails += 1
        runs += 1
        if (runs === 1) throw Object.assign(new Error('busy'), { sign: 'serialization' })
        return 'paid'
      },
    })
    const input = order()
    await pay(input).catch(() => undefined)
    await pay(input)
    await later()
    expect(violations).toMatchObject([{ code: 'DRILL_EFFECTS', effects: { before: 2, after: 2 } }])
  })

  it('is left out where there is no outcome, or too little of it was kept, or for too short a time', async () => {
    const { db, later } = world()
    const throws = paying(db, {
      run: () => {
        throw new Error('no')
      },
    })
    await expect(throws(order())).rejects.toThrow('no')
    const large = db.operation('large', { ...identity, largestOutcome: 10, run: () => 'x'.repeat(100) })
    expect(await large(order())).toHaveLength(100)
    const short = db.operation('short', { ...identity, window: '20s', run: () => 'done' })
    await short(order())
    expect(await later()).toMatchObject({ agreed: 1, skipped: { 'no-outcome': 1, 'not-kept': 1 } })
    const brief = world({ after: '15s' })
    await paying(brief.db, { window: '20s' })(order())
    expect(brief.drilled.counts.skipped.window).toBe(1)
  })

  it('fails and waits as ever where the drill cannot work, and the drill counts that', async () => {
    const { db, later } = world()
    const pay = paying(db)
    await pay(order())
    await db.close()
    expect(await later()).toMatchObject({ agreed: 0, violations: 0, skipped: { unanswered: 1 } })
  })

  it('is the very same without a drill, and with one that is off', async () => {
    const clock = manualClock()
    for (const options of [{}, { drill: drill({ oneIn: 0 }) }]) {
      const db = memory({ name: 'shop', clock, ...options })
      await db.operation('pay', { ...identity, run: () => 'paid' })(order())
      expect(clock.pendingTimers).toBe(0)
    }
    expect(() => memory({ name: 'shop', drill: { oneIn: 1000 } as never })).toThrow(
      expect.objectContaining({ code: 'ARGUMENT_INVALID', details: { option: 'drill' } }),
    )
  })
})

describe('a leased operation', () => {
  const charging = (db: MemoryDomain, more: object = {}) => {
    let sent = 0
    const charge = leased('charge', {
      ...identity,
      store: db,
      lease: '30s',
      recover: rerunKeyed('24h'),
      run: (lease) =>
        lease.effect('capture', async () => {
          sent += 1
          return { sent }
        }),
      ...more,
    })
    return { charge, sent: () => sent }
  }

  it('agrees, also where it goes on behind its caller', async () => {
    const { db, later } = world()
    const { charge, sent } = charging(db)
    await charge(order())
    const begun = await begin(charge, order())
    expect(begun.state).toBe('working')
    if (begun.state === 'working') await begun.end
    expect(await later()).toMatchObject({ agreed: 2, violations: 0 })
    expect(sent()).toBe(2)
  })

  it('is found with a scope that is minted; nothing is sent, and no claim stays', async () => {
    const { db, later, codes } = world()
    const { charge, sent } = charging(db, { scope: () => scope(mintKey()) })
    await charge(order())
    await later()
    expect([codes(), sent()]).toEqual([['DRILL_EXECUTED'], 1])
    expect(recordsOf(db)).toBe(1)
  })
})
