// Bugs in what the runners stand on, or in how they are used: each is a switch in a story that is sound without it.

import { randomUUID } from 'node:crypto'
import type { Records } from '../../../../src/atomicity/index.js'
import { rerunKeyed, sweep } from '../../../../src/idempotency/index.js'
import { mintKey, scope } from '../../../../src/identity/index.js'
import type { Clock } from '../../../../src/kernel/index.js'
import { memory } from '../../../../src/stores/memory/index.js'
import { MemoryRecords } from '../../../../src/stores/memory/records/records.js'
import type { FindingKind } from '../../../../src/testing/index.js'
import { processClock } from '../../../idempotency/leased-world.js'
import { type BugWorld, closedGate, replaced } from './bug-world.js'

/** A bug, how it shows, and its story with and without it. */
export interface PlantedBug {
  readonly name: string
  readonly shows: FindingKind
  readonly story: (world: BugWorld, planted: boolean) => Promise<void>
}

/** What a bug makes of the store, where it is planted. */
const seenBy = (planted: boolean, bug: (records: Records) => Records) => (records: Records) =>
  planted ? bug(records) : records

const checkThenAct = (records: Records): Records =>
  replaced(records, {
    async insert(id, draft, limits) {
      const seen = await records.read(id, limits)
      if (seen.record !== undefined) return { ...seen, written: false }
      await new Promise((resolve) => setImmediate(resolve))
      const { record, ...answer } = await records.insert(id, draft, limits)
      if (answer.written || record === undefined) return { record, ...answer }
      const { token, leaseMs = 0 } = draft
      return records.swap(id, record, { state: 'claimed', token, fence: 'next', dueInMs: leaseMs }, limits)
    },
  })

const withoutFence = (records: Records): Records =>
  replaced(records, {
    async swap(id, over, change, limits, note) {
      const { record } = await records.read(id, limits)
      return records.swap(id, change?.remembered === undefined ? over : (record ?? over), change, limits, note)
    },
  })

const clientClock = (records: Records, clock: Clock): Records =>
  replaced(records, {
    read: async (id, limits) => ({ ...(await records.read(id, limits)), nowMs: clock.wallMs() }),
    insert: async (id, draft, limits) => ({ ...(await records.insert(id, draft, limits)), nowMs: clock.wallMs() }),
  })

const windowFromClaim = (records: Records): Records =>
  replaced(records, {
    async swap(id, over, change, limits, note) {
      if (change?.remembered === undefined) return records.swap(id, over, change, limits, note)
      const { record, nowMs } = await records.read(id, limits)
      const remembered = Math.max(1, change.remembered - (nowMs - (record?.claimedAtMs ?? nowMs)))
      return records.swap(id, over, { ...change, remembered }, limits, note)
    },
  })

const releaseAfterSuccess = (records: Records): Records =>
  replaced(records, {
    async swap(id, over, change, limits, note) {
      const answer = await records.swap(id, over, change, limits, note)
      const { record } = answer
      if (answer.written && record?.state === 'succeeded') await records.swap(id, record, null, limits)
      return answer
    },
  })

/** Two callers at once, in two processes. */
async function twoAtOnce(world: BugWorld, planted: boolean): Promise<void> {
  const wrap = seenBy(planted, checkThenAct)
  const [one, other] = [world.process({ wrap }), world.process({ wrap })]
  await world.through(Promise.all([world.call(one), world.call(other)]))
}

/** An owner whose machine is suspended comes back after another one has completed. */
async function suspendedOwner(world: BugWorld, planted: boolean): Promise<void> {
  const gate = closedGate()
  const clock = processClock(world.clock)
  const run = async (lease: Parameters<typeof attempt>[0]) => {
    const result = attempt(lease)
    if (lease.attempt === 1) await gate.opened
    return result
  }
  const attempt = (lease: { readonly attempt: number; key(step: string): string }): string =>
    `${world.send(lease.key('charge'), true)} by attempt ${lease.attempt}`
  const recover = rerunKeyed('24h')
  const first = world.process({ clock, run, recover, wrap: seenBy(planted, withoutFence) })
  const second = world.process({ run, recover })
  const calling = first.charge(world.order).catch(() => undefined)
  await world.turns()
  clock.pause('suspended')
  await world.clock.advance('1m')
  await world.through(world.call(second))
  // It goes on before its clock does: no timer tells it that its lease is over.
  gate.open()
  await world.through(calling)
  clock.resume()
  await world.through(world.call(world.process({ recover })))
}

/** Somebody comes whose clock is an hour ahead, while the owner is at work. */
async function clockAhead(world: BugWorld, planted: boolean): Promise<void> {
  const gate = closedGate()
  const ahead = { ...world.clock, wallMs: () => world.clock.wallMs() + 3_600_000 }
  const first = world.process({
    run: async (lease) => {
      await gate.opened
      return lease.effect('charge', ({ key }) => world.send(key))
    },
  })
  const wrap = seenBy(planted, (records) => clientClock(records, ahead))
  const second = world.process({ clock: ahead, wrap })
  const calls = [world.call(first)]
  await world.turns()
  calls.push(world.call(second))
  await world.turns()
  gate.open()
  await world.through(Promise.all(calls))
}

/** Work that takes most of the window, and a repeat within the window after its end. */
async function longWork(world: BugWorld, planted: boolean): Promise<void> {
  const gate = closedGate()
  const one = world.process({
    window: '1h',
    wrap: seenBy(planted, windowFromClaim),
    run: async (lease) => {
      await gate.opened
      return lease.effect('charge', ({ key }) => world.send(key))
    },
  })
  const calling = world.call(one)
  await world.clock.advance('50m')
  gate.open()
  await world.through(calling)
  await world.clock.advance('20m')
  await world.through(world.call(one))
}

/** A call and its repeat. */
async function twice(world: BugWorld, one: Parameters<BugWorld['call']>[0]): Promise<void> {
  await world.through(world.call(one))
  await world.through(world.call(one))
}

/** A run whose answer is lost, and the repeat that runs it again. */
async function answerLost(world: BugWorld, planted: boolean): Promise<void> {
  const run: NonNullable<Parameters<BugWorld['process']>[0]>['run'] = (lease) =>
    lease.effect('charge', ({ key, attempt }) => {
      const result = world.send(planted ? mintKey() : key, true)
      if (attempt === 1) throw new Error('the answer is lost')
      return result
    })
  await twice(world, world.process({ run, recover: rerunKeyed('24h') }))
}

/** An owner that dies after its effect, and a sweep that comes by. */
async function sweptAfterDeath(world: BugWorld, planted: boolean): Promise<void> {
  const clock = processClock(world.clock)
  const first = world.process({
    clock,
    keepInput: true,
    run: async (lease) => {
      await lease.effect('charge', ({ key }) => world.send(key))
      return new Promise(() => undefined)
    },
  })
  first.charge(world.order).catch(() => undefined)
  world.verdicts.push('unknown')
  await world.turns()
  clock.pause()
  await world.clock.advance('1m')
  // This receiver does not tell a repeat from a new request.
  const second = world.process({ keepInput: true, ...(planted ? { recover: rerunKeyed('24h') } : {}) })
  await world.through(sweep({ store: second.store, operations: [second.charge] }))
  await world.through(world.call(second))
}

/** A crash between what should be one commit, and the repeat. */
function crashBetween(order: 'marker first' | 'effect first'): PlantedBug['story'] {
  return async (world, planted) => {
    const db = memory({ name: 'bugs', clock: world.clock })
    db.table('ledger', { unique: [['id']] })
    const { intent, key } = world.order
    type Transaction = Parameters<Parameters<typeof db.transact>[0]>[0]
    const effect = async (tx: Transaction): Promise<string> => {
      await tx.insertOnce('ledger', { id: randomUUID(), intent }, ['id'])
      return 'paid'
    }
    let crashes = 0
    const crash = (): void => {
      crashes += 1
      if (crashes === 1) throw new Error('the process dies here')
    }
    const about = { scope: () => scope('tests'), key: () => key, window: '1h' } as const
    const whole = db.operation('whole', {
      ...about,
      run: async (tx, _order: object) => {
        const result = await effect(tx)
        crash()
        return result
      },
    })
    const marker = db.operation('marker', { ...about, run: (_tx, _order: object) => 'paid' })
    const apart = async (): Promise<string> => {
      if (order === 'marker first') {
        const { replayed } = await marker.outcome({})
        if (replayed) return 'paid'
        crash()
        return db.transact(effect)
      }
      const known = await db.lookup({ operation: marker, scope: scope('tests'), key })
      if (known.state === 'succeeded') return 'paid'
      await db.transact(effect)
      crash()
      return marker({})
    }
    for (let calls = 0; calls < 2; calls += 1) {
      const calling = (planted ? apart() : whole({})).then(
        (result) => {
          world.verdicts.push('committed')
          world.results.push(result)
        },
        () => void world.verdicts.push('unknown'),
      )
      await world.through(calling)
    }
    world.effects.push(...db.rows('ledger').map((row) => ({ intent: String(row['intent']) })))
  }
}

/** All of them, by the names under which they are known. */
export const plantedBugs: readonly PlantedBug[] = [
  { name: 'check-then-act claim', shows: 'duplicate', story: twoAtOnce },
  { name: 'completion without fence', shows: 'wrong-result', story: suspendedOwner },
  { name: 'lease by client clock', shows: 'duplicate', story: clockAhead },
  { name: 'window counted from the claim', shows: 'duplicate', story: longWork },
  {
    name: 'release after success',
    shows: 'duplicate',
    story: (world, planted) => twice(world, world.process({ wrap: seenBy(planted, releaseAfterSuccess) })),
  },
  {
    name: 'key minted per attempt',
    shows: 'duplicate',
    story: (world, planted) => twice(world, world.process(planted ? { key: () => mintKey() } : {})),
  },
  { name: 'key of a step minted per attempt', shows: 'duplicate', story: answerLost },
  { name: 'sweep that re-executes without asking', shows: 'duplicate', story: sweptAfterDeath },
  { name: 'marker in another transaction, before the effect', shows: 'lost', story: crashBetween('marker first') },
  { name: 'marker in another transaction, after the effect', shows: 'duplicate', story: crashBetween('effect first') },
  {
    name: 'replay from memory, without the store',
    shows: 'duplicate',
    async story(world, planted) {
      // Each process remembers for itself.
      const wrap = seenBy(planted, () => new MemoryRecords(world.clock))
      await world.through(world.call(world.process({ wrap })))
      await world.through(world.call(world.process({ wrap })))
    },
  },
]
