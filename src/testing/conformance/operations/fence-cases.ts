// What every store must do to an owner that comes back too late: it can neither complete, renew, release nor give up
// what is somebody else's by now.

import { begin, hold, type Lease, type Operation, rerunKeyed } from '../../../idempotency/index.js'
import { isRepriseError } from '../../../kernel/index.js'
import type { RecordCase, RecordWorld } from '../conformance-case.js'
import { ConformanceFailure, failing, holds, same } from '../expectations.js'
import { gate } from '../gate.js'
import { limits, noted } from '../record-world.js'
import {
  chargeId,
  charging,
  hasNoOther,
  inOneProcess,
  type Order,
  order,
  stoppableClock,
  until,
  which,
} from './operation-world.js'

/**
 * A process that was stopped in its body, and goes on with what it is told when its lease is over by the store's clock.
 */
async function zombie(world: RecordWorld, goesOn: (lease: Lease) => Promise<unknown>, one: Order = order('a')) {
  const clock = stoppableClock()
  const inside = gate(2)
  const charge = charging(await world.second({ clock }), {
    lease: '800ms',
    recover: hold(),
    run: async (lease) => {
      clock.stop()
      await inside.arrive()
      return goesOn(lease)
    },
  })
  const call = charge(one)
  call.catch(() => undefined)
  await inside.waiting(1)
  await until('the lease is over by the store’s clock', async () => {
    const { record, nowMs } = await world.db.records.read(chargeId(one, world.db), limits())
    return (record?.dueAtMs ?? 0) < nowMs
  })
  // By its own clock the lease is not over: what it is told is the store's answer.
  const goOn = async (because = 'taken-over-before-completion'): Promise<Operation<Order, unknown>> => {
    void inside.arrive()
    const error = await failing(call, 'LEASE_LOST')
    same(isRepriseError(error) ? error.details['because'] : error, because, 'why the claim is lost')
    return charge
  }
  return { one, goOn }
}

/** What is stored of an order. */
const stored = async ({ db }: RecordWorld, one: Order) => (await db.records.read(chargeId(one, db), limits())).record

/** Cases of the group `store.operation.fence`. */
export const fenceCases: readonly RecordCase[] = [
  {
    id: 'store.operation.fence.01',
    title: 'MUST give every claim a larger fence than all before it, also after a key was freed',
    async run({ db, second }) {
      const fences: number[] = []
      const define = (domain: typeof db) =>
        charging(domain, {
          recover: hold(),
          run: async (lease, { key }) => {
            fences.push(lease.fence)
            if (key === 'free') throw lease.notSent(new Error('no connection'))
            return 1
          },
        })
      const charge = define(db)
      const other = await second()
      const charges = other === db ? [charge] : [charge, define(other)]
      for (const one of charges) {
        await failing(one(order('free')))
        await failing(one(order('free')))
        await one(order(`one-${fences.length}`))
      }
      const grows = fences.every((fence, place) => place === 0 || fence > (fences[place - 1] ?? 0))
      holds(fences.length === 3 * charges.length && grows, `fences that grow: ${fences.join(', ')}`)
    },
  },
  {
    id: 'store.operation.fence.02',
    title: 'MUST refuse the completion of an owner whose claim was taken over, and keep the outcome of the new one',
    deniedBy: inOneProcess,
    refusal: hasNoOther,
    async run(world) {
      const { one, goOn } = await zombie(world, async () => 'of the zombie')
      const charge = charging(world.db, { recover: rerunKeyed('24h'), run: async () => 'of the new owner' })
      same(await charge(one), 'of the new owner', 'the new owner')
      const before = await stored(world, one)
      const late = await goOn()
      same(await stored(world, one), before, 'the record after the zombie')
      same([await charge(one), await late(one)], ['of the new owner', 'of the new owner'], 'replays')
    },
  },
  {
    id: 'store.operation.fence.03',
    title: 'MUST refuse a completion that comes while the new owner is still at work',
    deniedBy: inOneProcess,
    refusal: hasNoOther,
    async run(world) {
      const { one, goOn } = await zombie(world, async () => 'of the zombie')
      const inside = gate(2)
      const charge = charging(world.db, {
        recover: rerunKeyed('24h'),
        run: async () => {
          await inside.arrive()
          return 'of the new owner'
        },
      })
      const call = charge(one)
      await inside.waiting(1)
      await goOn()
      same((await stored(world, one))?.state, 'claimed', 'the state after the zombie')
      await inside.arrive()
      same([await call, await charge(one)], ['of the new owner', 'of the new owner'], 'outcome and replay')
    },
  },
  {
    id: 'store.operation.fence.04',
    title: 'MUST let a stale owner neither renew, nor free the key, nor make its outcome unknown',
    deniedBy: inOneProcess,
    refusal: hasNoOther,
    async run(world) {
      const charge = charging(world.db, { recover: rerunKeyed('24h'), run: async () => 'of the new owner' })
      const tries: Record<string, (lease: Lease) => Promise<unknown>> = {
        'lost-while-running': (lease) => lease.renew(),
        'taken-over-before-release': (lease) => Promise.reject(lease.notSent(new Error('no connection'))),
        'taken-over': () => Promise.reject(new Error('reset')),
      }
      for (const [because, goesOn] of Object.entries(tries)) {
        const { one, goOn } = await zombie(world, goesOn, order(because))
        await charge(one)
        const before = await stored(world, one)
        await goOn(because)
        same(await stored(world, one), before, `the record after a zombie: ${because}`)
      }
    },
  },
  {
    id: 'store.operation.fence.05',
    title: 'MUST refuse the owner of a claim that a sweep has made unknown',
    deniedBy: inOneProcess,
    refusal: hasNoOther,
    async run(world) {
      const { one, goOn } = await zombie(world, async () => 'of the zombie')
      const charge = charging(world.db, { recover: hold(), run: async () => 'never' })
      same((await world.db.sweep([charge])).held, 1, 'what the sweep holds')
      await goOn('expired-before-completion')
      const known = await world.db.lookup(which(charge, one))
      same([known.state, known.notes.map(({ to }) => to)], ['unknown', noted(world, ['unknown'])], 'state and notes')
    },
  },
  {
    id: 'store.operation.fence.06',
    title: 'MUST not send anything on a lease that is over, however late the process hears of it',
    async run({ db }) {
      let sent = 0
      let tried: Promise<unknown> | undefined
      const isOver = async (one: Order): Promise<boolean> => {
        const { record, nowMs } = await db.records.read(chargeId(one, db), limits())
        return (record?.dueAtMs ?? 0) < nowMs
      }
      const charge = charging(db, {
        lease: '200ms',
        recover: hold(),
        run: (lease, one) => {
          const late = until('the lease is over', () => isOver(one)).then(() => lease.effect('capture', () => ++sent))
          tried = failing(late, 'LEASE_LOST')
          tried.catch(() => undefined)
          return late
        },
      })
      // The claim has all the time that it needs. The work has next to none, and no renewal comes after its limit, so
      // that the lease runs out while the body waits.
      const begun = await begin(charge, order('a'), { deadline: '60s', workLimit: 1 })
      if (begun.state === 'ended') throw new ConformanceFailure('a charge that was to be begun had ended before')
      await failing(begun.end, 'LEASE_LOST')
      holds(tried !== undefined, 'a call that was tried')
      await tried
      same(sent, 0, 'calls that were sent')
    },
  },
]
