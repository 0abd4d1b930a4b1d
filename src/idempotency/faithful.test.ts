import { afterEach, describe, expect, it } from 'vitest'
import { gate } from '../../test/gate.js'
import { chargeOptions, code, type Order, process, type Receipt, world } from '../../test/idempotency/leased-world.js'
import { draftedRecord, type StoredRecord } from '../atomicity/index.js'
import { mintKey, scope } from '../identity/index.js'
import { eventLoopTurn } from '../kernel/index.js'
import { memory } from '../stores/memory/index.js'
import { type FaultPoints, faultPoints, manualClock } from '../testing/index.js'
import {
  type Failure,
  fail,
  leased,
  OperationFailedError,
  operationId,
  rerunKeyed,
  sweep,
  type ValueCodec,
} from './index.js'

/** Keeps account of what it encodes, decodes and discards. */
function accounting<Value>(more: Partial<ValueCodec<Value>> = {}) {
  const did: string[] = []
  const codec: ValueCodec<Value> = {
    name: 'accounting-1',
    failures: true,
    faithful: true,
    encode: (value) => {
      did.push(`encode ${JSON.stringify(value)}`)
      return JSON.stringify(value)
    },
    decode: (text) => {
      did.push(`decode ${text}`)
      return JSON.parse(text)
    },
    discard: (value) => {
      did.push(`discard ${JSON.stringify(value)}`)
    },
    ...more,
  }
  return { codec, did }
}

const shop = scope('shop')
const identity = { scope: () => shop, key: (order: Order) => order.key, window: '24h' } as const
const order = (): Order => ({ key: mintKey(), amount: 5 })

// A record whose memory has ended: a transaction does not commit over it, and the next attempt takes its place.
const forgotten: StoredRecord = {
  ...draftedRecord({ mode: 'atomic', token: 'theirs' }, 0, () => 1),
  state: 'succeeded',
  value: '"theirs"',
  expiresAtMs: 1,
}

let faults: FaultPoints | undefined
afterEach(() => faults?.disarm())

describe('a faithful codec of an atomic operation', () => {
  function paying(run: (attempt: number) => Receipt, more: Partial<ValueCodec<Receipt>> = {}) {
    const clock = manualClock()
    const db = memory({ name: 'shop', clock })
    const { codec, did } = accounting<Receipt>(more)
    let runs = 0
    const returned: Receipt[] = []
    const pay = db.operation('pay', {
      ...identity,
      codec,
      failures: ['no'],
      run: () => {
        runs += 1
        const receipt = run(runs)
        returned.push(receipt)
        return receipt
      },
    })
    return { db, clock, pay, did, returned }
  }

  it('gives the first caller what the body returned, and a repeat what was stored', async () => {
    const { pay, did, returned } = paying((charge) => ({ charge }))
    const input = order()
    expect(await pay(input)).toBe(returned[0])
    expect(did).toEqual(['encode {"charge":1}'])
    expect(await pay.outcome(input)).toEqual({ outcome: 'succeeded', value: { charge: 1 }, replayed: true })
    expect(did).toEqual(['encode {"charge":1}', 'decode {"charge":1}'])
  })

  it('gives the first caller the failure that was thrown', async () => {
    const data = { why: 'closed' }
    const { pay, did } = paying(() => {
      throw new OperationFailedError(fail('no', data))
    })
    const input = order()
    const first = await pay.outcome(input)
    expect(first).toMatchObject({ outcome: 'failed', replayed: false })
    expect(first.outcome === 'failed' && first.failure.data).toBe(data)
    expect(did).toEqual(['encode {"code":"no","data":{"why":"closed"}}'])
    expect(await pay.outcome(input)).toMatchObject({ failure: { code: 'no', data }, replayed: true })
  })

  it('discards the value of a run that was rolled back, once another took its place', async () => {
    const input = order()
    const { db, clock, pay, did, returned } = paying((charge) => {
      if (charge === 1) db.putRecord(operationId('pay', shop, input.key), forgotten)
      return { charge }
    })
    const paid = pay(input)
    await clock.advance('1s')
    expect(await paid).toBe(returned[1])
    expect(did).toEqual(['encode {"charge":1}', 'discard {"charge":1}', 'encode {"charge":2}'])
  })

  it('discards the value of a call that ends with an error', async () => {
    const { pay, did } = paying((charge) => ({ charge }))
    faults = faultPoints()
    faults.throwAt('transaction.before-commit', new Error('broken'))
    await expect(pay(order())).rejects.toThrow('broken')
    expect(did).toEqual(['encode {"charge":1}', 'discard {"charge":1}'])
  })

  it('discards the value where somebody else’s outcome is replayed', async () => {
    const input = order()
    const { db, clock, pay, did } = paying((charge) => {
      const theirs = { codec: 'accounting-1', value: '{"charge":7}', expiresAtMs: undefined }
      db.putRecord(operationId('pay', shop, input.key), { ...forgotten, ...theirs })
      return { charge }
    })
    const paid = pay.outcome(input)
    await clock.advance('1s')
    expect(await paid).toEqual({ outcome: 'succeeded', value: { charge: 7 }, replayed: true })
    expect(did).toEqual(['encode {"charge":1}', 'discard {"charge":1}', 'decode {"charge":7}'])
  })

  it('discards a thrown failure where somebody else’s outcome is replayed', async () => {
    const { db, pay, did } = paying((charge) => {
      throw new OperationFailedError(fail('no', { charge }))
    })
    const input = order()
    const id = operationId('pay', shop, input.key)
    faults = faultPoints()
    faults.at('operation.failing', async () => {
      const draft = { mode: 'atomic', operation: 'pay', scope: shop, token: 'other' } as const
      const limits = { deadline: { expiresAtMs: 1e9 } }
      const { record } = await db.records.insert(id, draft, limits)
      const change = { state: 'succeeded', codec: 'accounting-1', value: '{"charge":7}', remembered: 1e6 } as const
      await db.records.swap(id, record as StoredRecord, change, limits)
    })
    expect(await pay.outcome(input)).toEqual({ outcome: 'succeeded', value: { charge: 7 }, replayed: true })
    const failure = '{"code":"no","data":{"charge":1}}'
    expect(did).toEqual([`encode ${failure}`, `discard ${failure}`, 'decode {"charge":7}'])
  })

  it('discards what a body returns after its time was over', async () => {
    const { codec, did } = accounting<Receipt>()
    const clock = manualClock()
    const db = memory({ name: 'shop', clock })
    const work = gate<Receipt>()
    const pay = db.operation('pay', { ...identity, codec, bodyLimit: '1s', attempts: 1, run: () => work.opened })
    const paid = code(pay(order()))
    await clock.advance('2s')
    expect(await paid).not.toBe('fulfilled')
    expect(did).toEqual([])
    work.open({ charge: 1 })
    await eventLoopTurn()
    expect(did).toContain('discard {"charge":1}')
  })

  it('is not asked to discard what it was not told of, and what it throws changes nothing', async () => {
    const { codec, did } = accounting<Receipt>({
      failures: false,
      discard: () => {
        did.push('discard')
        throw new Error('broken')
      },
    })
    const db = memory({ name: 'shop', clock: manualClock() })
    const refusing = (): Receipt | Failure<'no', undefined> => fail('no')
    const failing = db.operation('fail', { ...identity, codec, failures: ['no'], run: refusing })
    faults = faultPoints()
    faults.throwAt('transaction.before-commit', new Error('first'), { times: 2 })
    await expect(failing(order())).rejects.toThrow('first')
    expect(did).toEqual([])
    const pay = db.operation('pay', { ...identity, codec, run: () => ({ charge: 1 }) })
    await expect(pay(order())).rejects.toThrow('first')
    expect(did).toEqual(['encode {"charge":1}', 'discard'])
  })

  it('is refused where discard is no function', () => {
    const { codec } = accounting<Receipt>({ discard: 'yes' as never })
    const define = () => memory({ name: 'shop' }).operation('pay', { ...identity, codec, run: () => ({ charge: 1 }) })
    expect(define).toThrow(expect.objectContaining({ code: 'OPERATION_INVALID', details: { option: 'codec' } }))
  })
})

describe('a codec that is not faithful', () => {
  it('decodes for the first caller too, and discards only what was not stored', async () => {
    const { codec, did } = accounting<Receipt>()
    const { faithful: _faithful, ...usual } = codec
    const clock = manualClock()
    const db = memory({ name: 'shop', clock })
    const input = order()
    let runs = 0
    const run = () => {
      runs += 1
      if (runs === 1) db.putRecord(operationId('pay', shop, input.key), forgotten)
      return { charge: runs }
    }
    const pay = db.operation('pay', { ...identity, codec: usual, run })
    const paid = pay(input)
    await clock.advance('1s')
    expect(await paid).toEqual({ charge: 2 })
    expect(did.slice(1)).toEqual(['discard {"charge":1}', 'encode {"charge":2}', 'decode {"charge":2}'])
  })
})

describe('a faithful codec of a leased operation', () => {
  it('gives the first caller what the body returned, and a repeat what was stored', async () => {
    const { codec, did } = accounting<Receipt>()
    const receipt = { charge: 1 }
    const { charge } = process(world(), () => receipt, { codec })
    const input = order()
    expect(await charge(input)).toBe(receipt)
    expect(did).toEqual(['encode {"charge":1}'])
    expect(await charge.outcome(input)).toEqual({ outcome: 'succeeded', value: receipt, replayed: true })
    expect(did).toEqual(['encode {"charge":1}', 'decode {"charge":1}'])
  })

  it('discards the value of a run whose claim was taken over meanwhile', async () => {
    const { codec, did } = accounting<Receipt>()
    const one = world()
    const [late, quick] = [gate<Receipt>(), { charge: 2 }]
    const options = { codec, recover: rerunKeyed('24h') }
    const owner = process(one, () => late.opened, options)
    const other = process(one, () => quick, options)
    const input = one.order()
    const first = code(owner.charge(input))
    await one.clock.advance('1s')
    owner.clock.pause()
    await one.clock.advance('60s')
    expect(await other.charge(input)).toBe(quick)
    late.open({ charge: 1 })
    owner.clock.resume()
    await one.clock.advance('60s')
    expect(await first).toBe('LEASE_LOST')
    await eventLoopTurn()
    expect(did.filter((what) => what.startsWith('discard'))).toEqual(['discard {"charge":1}'])
  })

  it('discards the value of a caller that has gone, and of a sweep', async () => {
    const { codec, did } = accounting<Receipt>()
    const one = world()
    const work = gate<Receipt>()
    const { charge } = process(one, () => work.opened, { codec })
    const caller = new AbortController()
    const input = one.order()
    const gone = charge(input, { signal: caller.signal }).catch((error: unknown) => error)
    await eventLoopTurn()
    caller.abort('gone')
    expect(await gone).toBe('gone')
    work.open({ charge: 1 })
    await eventLoopTurn()
    expect(did).toEqual(['encode {"charge":1}', 'discard {"charge":1}'])
    expect(await charge(input)).toEqual({ charge: 1 })
  })

  it('discards what a sweep ran again, since nobody waits for it', async () => {
    const { codec, did } = accounting<Receipt>()
    const one = world()
    const store = one.store()
    let runs = 0
    const run = () => {
      runs += 1
      if (runs === 1) throw new Error('nobody knows')
      return { charge: runs }
    }
    const options = chargeOptions({ store, codec, run, keepInput: true, recover: rerunKeyed('24h'), lookAfter: '1s' })
    const charge = leased('charge', options)
    const input = one.order()
    expect(await code(charge(input))).toBe('OPERATION_UNKNOWN')
    await one.clock.advance('10s')
    expect(await sweep({ store, operations: [charge] })).toMatchObject({ taken: 1, succeeded: 1 })
    expect(did).toEqual(['encode {"charge":2}', 'discard {"charge":2}'])
    expect(await charge(input)).toEqual({ charge: 2 })
  })
})
