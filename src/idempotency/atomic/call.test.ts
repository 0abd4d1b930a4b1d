import { describe, expect, it } from 'vitest'
import type { StoredRecord } from '../../atomicity/index.js'
import { currentIntent, deriveKey, type Key, mintKey, scope } from '../../identity/index.js'
import { eventLoopTurn, isRepriseError, RepriseError } from '../../kernel/index.js'
import { type MemoryDomain, memory } from '../../stores/memory/index.js'
import { faultPoints, manualClock } from '../../testing/index.js'
import { fail, OperationFailedError, operationId } from '../index.js'

interface Order {
  readonly key: Key
  readonly amount: number
  readonly note?: string
}

const shop = scope('shop')
const identity = { scope: () => shop, key: (order: Order) => order.key, window: '24h' } as const
const order = (more: Partial<Order> = {}): Order => ({ key: mintKey(), amount: 5, ...more })

function world() {
  const clock = manualClock()
  const db = memory({ name: 'shop', clock })
  db.table('effect', { unique: [['id']] })
  return { db, clock }
}

const effects = (db: MemoryDomain) => db.rows('effect').length
const rejection = (work: Promise<unknown>) =>
  work.then(
    () => expect.unreachable('it was to be rejected'),
    (error: unknown) => error,
  )

/** An operation that leaves one row for each time it takes effect. */
function paying(db: MemoryDomain, more = {}) {
  let runs = 0
  const pay = db.operation('pay', {
    ...identity,
    run: async (tx, { amount }: Order) => {
      runs += 1
      const id = runs
      await tx.insertOnce('effect', { id: String(id) }, ['id'])
      return { receipt: id, amount }
    },
    ...more,
  })
  return { pay, runs: () => runs }
}

describe('a repeat', () => {
  it('gets the stored outcome, and the effect is there once', async () => {
    const { db } = world()
    const { pay, runs } = paying(db)
    const first = order()
    const answer = await pay(first)
    expect(await pay({ ...first })).toEqual(answer)
    expect(await pay.outcome(first)).toEqual({ outcome: 'succeeded', value: answer, replayed: true })
    expect([runs(), effects(db)]).toEqual([1, 1])
    expect(await pay(order())).toEqual({ receipt: 2, amount: 5 })
  })

  it('gets a value of its own, equal to the first and to what is stored', async () => {
    const { db } = world()
    const pay = db.operation('pay', { ...identity, run: async () => ({ b: [1], a: { when: 'now' } }) })
    const first = order()
    const answer = await pay(first)
    expect(answer).toEqual({ a: { when: 'now' }, b: [1] })
    ;(answer as { b: number[] }).b.push(2)
    const again = await pay(first)
    expect(again).toEqual({ a: { when: 'now' }, b: [1] })
    const id = operationId('pay', shop, first.key)
    const { record } = await db.records.read(id, { deadline: { expiresAtMs: 1e9 } })
    expect(record).toMatchObject({ value: '{"a":{"when":"now"},"b":[1]}', operation: 'pay' })
  })

  it('after the window executes anew, and a replay does not move the window', async () => {
    const { db, clock } = world()
    const { pay, runs } = paying(db, { window: '1h' })
    const first = order()
    await pay(first)
    await clock.advance(3_599_999)
    await pay(first)
    expect(runs()).toBe(1)
    await clock.advance(1)
    expect(await pay(first)).toEqual({ receipt: 2, amount: 5 })
    expect(runs()).toBe(2)
    await pay(first)
    expect(runs()).toBe(2)
  })

  it('of a body that returned nothing gets nothing, and nothing runs again', async () => {
    const { db } = world()
    let runs = 0
    const pay = db.operation('pay', { ...identity, run: () => void runs++ })
    const first = order()
    expect(await pay(first)).toBeUndefined()
    expect(await pay(first)).toBeUndefined()
    expect(runs).toBe(1)
  })

  it('is told apart by scope and by operation', async () => {
    const { db } = world()
    const options = { key: ({ key }: Order) => key, window: '1h' } as const
    const pay = db.operation('pay', { ...options, scope: ({ note = '' }) => scope(note), run: (_tx, { note }) => note })
    const refund = db.operation('refund', { ...options, scope: () => scope('alice'), run: () => 'refunded' })
    const first = order({ note: 'alice' })
    expect([await pay(first), await pay({ ...first, note: 'bob' }), await refund(first)]).toEqual([
      'alice',
      'bob',
      'refunded',
    ])
  })
})

describe('other content under the same key', () => {
  it('is refused, and the honest repeat still gets its outcome', async () => {
    const { db } = world()
    const { pay, runs } = paying(db)
    const first = order()
    const answer = await pay(first)
    await expect(pay({ ...first, amount: 6 })).rejects.toMatchObject({ code: 'OPERATION_MISMATCH' })
    expect(await pay(first)).toEqual(answer)
    expect(runs()).toBe(1)
  })

  it('is judged by the rule that the record was stored with', async () => {
    const { db } = world()
    const { pay } = paying(db, { fields: { omit: ['/note'] } })
    const first = order({ note: 'one' })
    const answer = await pay(first)
    const changed = memory({ name: 'later', clock: manualClock() })
    // The same record, under a definition whose rule is another one.
    Object.assign(changed.records, { committed: (db.records as unknown as { committed: unknown }).committed })
    const later = paying(changed)
    expect(await later.pay({ ...first, note: 'two' })).toEqual(answer)
    await expect(later.pay({ ...first, amount: 9 })).rejects.toMatchObject({ code: 'OPERATION_MISMATCH' })
    expect(later.runs()).toBe(0)
  })

  it('is not looked for where the definition says so', async () => {
    const { db } = world()
    const { pay, runs } = paying(db, { content: 'none' })
    const first = order()
    expect(await pay({ ...first, amount: 6 })).toEqual(await pay(first))
    expect(runs()).toBe(1)
  })
})

describe('a body', () => {
  it('gets its own copy of the input in each attempt, whatever others do to theirs', async () => {
    const { db } = world()
    const seen: unknown[] = []
    const pay = db.operation('pay', {
      scope: () => shop,
      key: (input: { key: Key; list: number[]; at: Date }) => input.key,
      window: '1h',
      run: async (_tx, input) => {
        seen.push(structuredClone(input))
        input.list.push(99)
        await eventLoopTurn()
        return input.list
      },
    })
    const given = { key: mintKey(), list: [1], at: new Date(0) }
    const running = pay(given)
    given.list.push(2)
    expect(await running).toEqual([1, 99])
    expect(given.list).toEqual([1, 2])
    given.list.pop()
    expect(await pay(given)).toEqual([1, 99])
    expect(seen).toEqual([{ key: given.key, list: [1], at: new Date(0) }])
  })

  it('runs on behalf of the record: keys derived in it are its own, and gone afterwards', async () => {
    const { db } = world()
    const derived = async () => deriveKey('capture')
    const pay = db.operation('pay', { ...identity, run: derived })
    const ship = db.operation('ship', { ...identity, run: derived })
    const first = order()
    const [paid, shipped] = [await pay(first), await ship(first)]
    expect(paid).not.toBe(shipped)
    expect(paid).not.toContain(first.key)
    expect(await pay(first)).toBe(paid)
    expect(currentIntent()).toBeUndefined()
  })

  it('that throws leaves neither effect nor marker: the key is free', async () => {
    const { db } = world()
    let runs = 0
    const pay = db.operation('pay', {
      ...identity,
      run: async (tx) => {
        runs += 1
        await tx.insertOnce('effect', { id: String(runs) }, ['id'])
        if (runs === 1) throw new Error('no')
        return runs
      },
    })
    const first = order()
    await expect(pay(first)).rejects.toThrow('no')
    expect(effects(db)).toBe(0)
    expect(await pay(first)).toBe(2)
    expect(effects(db)).toBe(1)
  })

  it('cannot call its own operation with its own key', async () => {
    const { db } = world()
    const pay: (input: Order) => Promise<unknown> = db.operation('pay', {
      ...identity,
      run: async (_tx, input: Order): Promise<unknown> => pay(input),
    })
    await expect(pay(order())).rejects.toMatchObject({ code: 'OPERATION_REENTERED' })
  })

  it('cannot call another operation of the domain: it would not be part of its transaction', async () => {
    const { db } = world()
    const { pay } = paying(db)
    const outer = db.operation('outer', { ...identity, run: async (_tx, input: Order) => pay(input) })
    await expect(outer(order())).rejects.toMatchObject({ code: 'TRANSACTION_NESTED' })
  })
})

describe('final failures', () => {
  function failing(db: MemoryDomain, how: 'return' | 'throw' | 'map') {
    let runs = 0
    const pay = db.operation('pay', {
      ...identity,
      failures: ['declined', 'odd'],
      terminal: (error) => (error instanceof RangeError ? fail('declined', { by: error.message }) : undefined),
      run: async (tx, _order: Order) => {
        runs += 1
        await tx.insertOnce('effect', { id: String(runs) }, ['id'])
        if (how === 'throw') throw new OperationFailedError(fail('declined', { by: 'bank' }))
        if (how === 'map') throw new RangeError('bank')
        return fail('declined', { by: 'bank' })
      },
    })
    return { pay, runs: () => runs }
  }

  it.each([
    ['return', 1],
    ['throw', 0],
    ['map', 0],
  ] as const)('by %s are stored, and keep %i of the writes', async (how, kept) => {
    const { db } = world()
    const { pay, runs } = failing(db, how)
    const input = order()
    const first = await rejection(pay(input))
    const second = await rejection(pay(input))
    const failure = { code: 'declined', data: { by: 'bank' } }
    expect(first).toBeInstanceOf(OperationFailedError)
    expect(first).toMatchObject({ code: 'OPERATION_FAILED', failure, replayed: false })
    expect(second).toMatchObject({ code: 'OPERATION_FAILED', failure, replayed: true })
    expect(await pay.outcome(input)).toMatchObject({ outcome: 'failed', failure, replayed: true })
    expect([runs(), effects(db)]).toEqual([1, kept])
    if (how === 'map') expect((first as Error).cause).toBeInstanceOf(RangeError)
  })

  it('with a code that is not registered are refused and rolled back, and the key is free', async () => {
    const { db } = world()
    let runs = 0
    const pay = db.operation('pay', {
      ...identity,
      failures: ['declined'],
      run: async (tx): Promise<unknown> => {
        runs += 1
        await tx.insertOnce('effect', { id: String(runs) }, ['id'])
        if (runs === 1) return fail('other')
        if (runs === 2) throw new OperationFailedError(fail('other'))
        return 'done'
      },
    })
    const input = order()
    for (let call = 0; call < 2; call++) {
      const error = await rejection(pay(input))
      expect(isRepriseError(error, 'FAILURE_UNREGISTERED')).toBe(true)
    }
    expect(effects(db)).toBe(0)
    expect(await pay(input)).toBe('done')
  })

  it('give way to another winner between the rollback and their own storing', async () => {
    const { db } = world()
    const { pay } = failing(db, 'throw')
    const input = order()
    const id = operationId('pay', shop, input.key)
    const faults = faultPoints()
    try {
      faults.at('operation.failing', async () => {
        const draft = { mode: 'atomic', operation: 'pay', scope: shop, token: 'other' } as const
        const limits = { deadline: { expiresAtMs: 1e9 } }
        const { record } = await db.records.insert(id, draft, limits)
        const change = { state: 'succeeded', value: '"theirs"', remembered: 1e6 } as const
        await db.records.swap(id, record as StoredRecord, change, limits)
      })
      expect(await pay.outcome(input)).toEqual({ outcome: 'succeeded', value: 'theirs', replayed: true })
      expect(faults.count('operation.failing')).toBe(1)
    } finally {
      faults.disarm()
    }
  })
})

describe('records that are not to be touched', () => {
  it.each([
    ['OPERATION_MODE_CHANGED', { mode: 'leased', state: 'claimed' }],
    ['RECORD_FORMAT_NEWER', { format: 3, fingerprint: 'sha9-of-tomorrow' }],
    ['MARKER_INVALID', { state: 'claimed' }],
  ])('%s: nothing is executed', async (code, change) => {
    const { db } = world()
    const { pay, runs } = paying(db)
    const input = order()
    await pay(input)
    const { committed } = db.records as unknown as { committed: Map<string, object> }
    const id = operationId('pay', shop, input.key)
    committed.set(id, { ...committed.get(id), ...change })
    for (let call = 0; call < 3; call++) await expect(pay(input)).rejects.toMatchObject({ code })
    expect(runs()).toBe(1)
  })
})

it('refuses a key that says it is too old, and no other', async () => {
  const clock = manualClock({ wallMs: Date.now() })
  const db = memory({ name: 'shop', clock })
  const pay = db.operation('pay', { ...identity, oldestKey: '1h', run: () => 'done' })
  const input = order()
  expect(await pay(input)).toBe('done')
  await clock.advance('2h')
  await expect(pay(input)).rejects.toMatchObject({ code: 'KEY_TOO_OLD' })
  expect(await pay(order({ key: 'no-time-in-it' as Key }))).toBe('done')
  expect(new RepriseError('KEY_TOO_OLD', '').message).not.toContain(input.key)
})
