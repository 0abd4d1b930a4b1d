// What other idempotency libraries were seen to do, and what an operation does on the same input. The ids name the
// observations: PT Powertools for TypeScript 2.35, NI node-idempotency, HI hono-idempotency, EI express-idempotency, IJ
// idempot-js. None of them is run here.

import { afterEach, describe, expect, it } from 'vitest'
import { fail, operationId, type ValueCodec } from '../../src/idempotency/index.js'
import { type Key, mintKey, scope } from '../../src/identity/index.js'
import { eventLoopTurn } from '../../src/kernel/index.js'
import { type MemoryDomain, memory } from '../../src/stores/memory/index.js'
import { type FaultPoints, faultPoints, type ManualClock, manualClock } from '../../src/testing/index.js'

interface Request {
  readonly key: Key
  readonly user?: string
  readonly body?: unknown
}

const identity = {
  scope: ({ user = 'alice' }: Request) => scope('shop', user),
  key: ({ key }: Request) => key,
  window: '24h',
} as const

let faults: FaultPoints | undefined
afterEach(() => faults?.disarm())

function world(): { readonly db: MemoryDomain; readonly clock: ManualClock } {
  const clock = manualClock()
  return { db: memory({ name: 'shop', clock }), clock }
}

/** An operation that counts its runs and answers with `answer`. */
function counting(db: MemoryDomain, answer: (request: Request, run: number) => unknown = (_request, run) => run) {
  let runs = 0
  const call = db.operation('handle', {
    ...identity,
    failures: ['unprocessable', 'see-other'],
    run: async (_tx, request: Request): Promise<unknown> => {
      runs += 1
      return answer(request, runs)
    },
  })
  return { call, runs: () => runs }
}

const refused = (code: string) => expect.objectContaining({ code })

describe('Powertools', () => {
  it('PT1: an identical repeat is not taken for other content', async () => {
    const { call, runs } = counting(world().db)
    const request = { key: mintKey(), body: { items: [{ id: 1, note: null }], total: 1.1 } }
    expect([await call(request), await call(structuredClone(request))]).toEqual([1, 1])
    expect(runs()).toBe(1)
  })

  it('PT2: two duplicates at the same time are one execution, and both get its outcome', async () => {
    const { call, runs } = counting(world().db, async (_request, run) => {
      await eventLoopTurn()
      return run
    })
    const request = { key: mintKey() }
    expect(await Promise.all([call(request), call(request)])).toEqual([1, 1])
    expect(runs()).toBe(1)
  })

  it('PT3: a body that changes its input changes neither the record nor the next repeat', async () => {
    const { call, runs } = counting(world().db, (request, run) => {
      Object.assign(request, { processed: true, key: mintKey() })
      ;(request.body as { list: number[] }).list.push(run)
      return run
    })
    const request = { key: mintKey(), body: { list: [] } }
    expect([await call(request), await call(request)]).toEqual([1, 1])
    expect(request.body.list).toEqual([])
    expect(runs()).toBe(1)
  })

  it('PT4: parts of an identity that are absent are refused, and Bob does not get what is Alice’s', async () => {
    const { db } = world()
    let runs = 0
    const call = db.operation('handle', {
      scope: ({ user }: Request) => scope('shop', user as string),
      key: ({ key }) => key,
      window: '24h',
      run: (_tx, { user }) => {
        runs += 1
        return user
      },
    })
    for (const request of [{ key: mintKey() }, { user: 'bob' } as Request, {} as Request]) {
      await expect(call(request)).rejects.toEqual(
        expect.objectContaining({ code: expect.stringMatching(/^(SCOPE|ARG)/) }),
      )
    }
    const key = mintKey()
    expect([await call({ key, user: 'alice' }), await call({ key, user: 'bob' })]).toEqual(['alice', 'bob'])
    expect(runs).toBe(2)
  })

  it('PT5: a zombie neither deletes nor overwrites what another execution stored', async () => {
    const { db, clock } = world()
    db.table('effect', { unique: [['id']] })
    const gates: (() => void)[] = []
    const zombies: Promise<unknown>[] = []
    let runs = 0
    const call = db.operation('handle', {
      ...identity,
      bodyLimit: '1s',
      run: async (tx, _request: Request) => {
        runs += 1
        const run = runs
        if (run === 1) {
          const late = new Promise<void>((resolve) => gates.push(resolve)).then(() =>
            tx.insertOnce('effect', { id: 'zombie' }, ['id']),
          )
          zombies.push(late.catch((error: { code: string }) => error.code))
          await late
        }
        return run
      },
    })
    const request = { key: mintKey() }
    const first = expect(call(request)).rejects.toEqual(refused('BODY_TIME_LIMIT'))
    await eventLoopTurn()
    await clock.advance('1s')
    await first
    expect(await call(request)).toBe(2)
    for (const open of gates) open()
    expect(await Promise.all(zombies)).toEqual(['TRANSACTION_OVER'])
    expect([await call(request), db.rows('effect'), runs]).toEqual([2, [], 2])
  })

  it.each([
    ['PT6: the order of members that differ in case only does not matter', '{"a":1,"A":2}', '{"A":2,"a":1}', 1],
    ['PT7: a __proto__ member counts', '{"__proto__":{"x":1}}', '{"__proto__":{"x":2}}', 'OPERATION_MISMATCH'],
    ['PT8: every digit of a number counts', '9007199254740993', '9007199254740992', 'OPERATION_MISMATCH'],
    ['NI-EX5: the order of members does not matter', '{"a":1,"b":2}', '{"b":2,"a":1}', 1],
  ])('%s', async (_title, first, second, expected) => {
    const { db } = world()
    const call = db.operation('handle', {
      scope: () => scope('shop'),
      key: ({ key }: { key: Key; json: string }) => key,
      content: ({ json }) => ({ json }),
      window: '1h',
      run: () => 1,
    })
    const key = mintKey()
    await call({ key, json: first })
    const again = await call({ key, json: second }).catch((error: { code: string }) => error.code)
    expect(again).toBe(expected)
  })

  it('PT9: the end of a window is a moment, not a millisecond within a second', async () => {
    const { db, clock } = world()
    const { call, runs } = counting(db)
    const request = { key: mintKey() }
    await call(request)
    for (const stepMs of [999, 1, 86_398_999]) {
      await clock.advance(stepMs)
      expect(await call(request)).toBe(1)
    }
    await clock.advance(1)
    expect(await call(request)).toBe(2)
    expect(runs()).toBe(2)
  })

  it('PT10: operations that share a store do not share records, and one inside another leaves none behind', async () => {
    const { db } = world()
    const inner = counting(db)
    const outer = db.operation('outer', {
      ...identity,
      run: async (_tx, request: Request): Promise<unknown> => inner.call(request),
    })
    const request = { key: mintKey() }
    await expect(outer(request)).rejects.toEqual(refused('TRANSACTION_NESTED'))
    expect(await inner.call(request)).toBe(1)
    await expect(outer(request)).rejects.toEqual(refused('TRANSACTION_NESTED'))
    expect([await inner.call(request), inner.runs()]).toEqual([1, 1])
  })
})

describe('node-idempotency', () => {
  it.each([[undefined], [null], [''], [0], [false], [[]]])(
    'NI-EX1, NI-EX2: an empty outcome (%j) is one, and nothing runs again',
    async (empty) => {
      const { call, runs } = counting(world().db, () => empty)
      const request = { key: mintKey() }
      expect(await call(request)).toEqual(empty)
      expect(await call.outcome(request)).toEqual({ outcome: 'succeeded', value: empty, replayed: true })
      expect(runs()).toBe(1)
    },
  )

  it('NI-EX3: a body that never ends is ended, and the key is free', async () => {
    const { db, clock } = world()
    const { call } = counting(db, (_request, run) => (run === 1 ? new Promise(() => undefined) : run))
    const request = { key: mintKey() }
    const first = expect(call(request)).rejects.toEqual(refused('BODY_TIME_LIMIT'))
    await eventLoopTurn()
    await clock.advance('5s')
    await first
    expect(await call(request)).toBe(2)
  })

  it('NI-EX4, IJ3: an error is not remembered as an outcome', async () => {
    const { call, runs } = counting(world().db, (_request, run) => {
      if (run === 1) throw new Error('500')
      return run
    })
    const request = { key: mintKey() }
    await expect(call(request)).rejects.toThrow('500')
    expect([await call(request), await call(request), runs()]).toEqual([2, 2, 2])
  })

  it('NI-EX7, HI1: bytes are refused where they would come back as something else, and kept by a codec', async () => {
    const { db } = world()
    const bytes = Uint8Array.of(0xff, 0xfe, 0, 1, 0x80)
    const { call, runs } = counting(db, () => bytes)
    const request = { key: mintKey() }
    await expect(call(request)).rejects.toEqual(refused('JSON_VALUE_UNSUPPORTED'))
    await expect(call(request)).rejects.toEqual(refused('JSON_VALUE_UNSUPPORTED'))
    expect(runs()).toBe(2)
    const codec: ValueCodec<Uint8Array> = {
      name: 'base64-1',
      encode: (value) => Buffer.from(value).toString('base64'),
      decode: (text) => new Uint8Array(Buffer.from(text, 'base64')),
    }
    const download = db.operation('download', { ...identity, codec, run: (): Uint8Array => bytes })
    expect([await download(request), await download(request)]).toEqual([bytes, bytes])
  })

  it('NI-EX8, IJ2: the same key of another user is another intent', async () => {
    const { call } = counting(world().db, ({ user }) => user)
    const key = mintKey()
    expect([await call({ key, user: 'alice' }), await call({ key, user: 'bob' })]).toEqual(['alice', 'bob'])
  })

  it.each(['transaction.acquired', 'transaction.begun', 'transaction.claimed', 'transaction.recorded'])(
    'NI-EX9, NI-FA3: a store that fails at %s ends the call, executes nothing unmarked, and is not taken for empty',
    async (point) => {
      const { db } = world()
      db.table('effect', { unique: [['id']] })
      let runs = 0
      const call = db.operation('handle', {
        ...identity,
        run: async (tx, _request: Request) => {
          runs += 1
          await tx.insertOnce('effect', { id: String(runs) }, ['id'])
          return runs
        },
      })
      faults = faultPoints()
      faults.throwAt(point, new Error('the store is down'), { times: 2 })
      const request = { key: mintKey() }
      const ends = await Promise.allSettled([call(request), call(request)])
      expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
      expect(db.rows('effect')).toEqual([])
      await call(request)
      await call(request)
      expect(db.rows('effect')).toHaveLength(1)
    },
  )

  it('NI-FA1: a mismatch leaves the record as it is', async () => {
    const { db } = world()
    const { call } = counting(db)
    const request = { key: mintKey(), body: 1 }
    await call(request)
    const id = operationId('handle', identity.scope(request), request.key)
    const limits = { deadline: { expiresAtMs: 1e9 } }
    const before = await db.records.read(id, limits)
    await expect(call({ ...request, body: 2 })).rejects.toEqual(refused('OPERATION_MISMATCH'))
    expect(await db.records.read(id, limits)).toEqual(before)
    expect(await call(request)).toBe(1)
  })

  it('NI-FA2: being told to come back later is not an outcome', async () => {
    const { db } = world()
    let open = (): void => undefined
    const call = db.operation('handle', {
      ...identity,
      duplicates: 'refuse',
      run: async (_tx, _request: Request) => {
        await new Promise<void>((resolve) => {
          open = resolve
        })
        return 'done'
      },
    })
    const request = { key: mintKey() }
    const first = call(request)
    await eventLoopTurn()
    await expect(call(request)).rejects.toEqual(refused('OPERATION_IN_FLIGHT'))
    open()
    expect([await first, await call(request)]).toEqual(['done', 'done'])
  })

  it('NI memory adapter, HI6: after its window a key is claimed again, once, and has a marker again', async () => {
    const { db, clock } = world()
    const { call, runs } = counting(db)
    const request = { key: mintKey() }
    await call(request)
    await clock.advance('24h')
    expect(await Promise.all([call(request), call(request), call(request)])).toEqual([2, 2, 2])
    expect([await call(request), runs()]).toEqual([2, 2])
  })
})

describe('others', () => {
  it.each(['unprocessable', 'see-other'] as const)(
    'HI2, HI3: a final answer (%s) is not executed again',
    async (code) => {
      const { call, runs } = counting(world().db, () => fail(code, { where: '/orders/7' }))
      const request = { key: mintKey() }
      for (let repeat = 0; repeat < 3; repeat++) {
        await expect(call(request)).rejects.toMatchObject({ failure: { code, data: { where: '/orders/7' } } })
      }
      expect(runs()).toBe(1)
    },
  )

  it('HI4: a member that only one of the two has is other content', async () => {
    const { call } = counting(world().db)
    const key = mintKey()
    await call({ key })
    await expect(call({ key, body: 'page=2' })).rejects.toEqual(refused('OPERATION_MISMATCH'))
  })

  it('HI5: of many at once one executes', async () => {
    const { call, runs } = counting(world().db)
    const request = { key: mintKey() }
    await Promise.all(Array.from({ length: 50 }, () => call(request)))
    expect(runs()).toBe(1)
  })

  it('EI1: nothing that a caller sends is taken for a state of ours', async () => {
    const { call, runs } = counting(world().db)
    const request = { key: mintKey(), 'x-hit': true, replayed: true, state: 'succeeded', value: 'mine' } as Request
    expect(await call(request)).toBe(1)
    expect(runs()).toBe(1)
  })

  it('IJ1: the same content under another key is another intent', async () => {
    const { call } = counting(world().db)
    expect([await call({ key: mintKey(), body: 1 }), await call({ key: mintKey(), body: 1 })]).toEqual([1, 2])
  })
})
