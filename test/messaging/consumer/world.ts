// A consumer on a store in memory, with time moved by hand and a source that a test feeds.

import { deadlineAfter } from '../../../src/kernel/index.js'
import {
  type ConsumeOptions,
  type Consumer,
  consume,
  type DeadLetter,
  type Decided,
  type MessageStore,
} from '../../../src/messaging/index.js'
import { type Backoff, transient, type Verdict } from '../../../src/retry/index.js'
import { type MemoryDomain, type MemoryTransaction, memory } from '../../../src/stores/memory/index.js'
import { type ManualClock, manualClock } from '../../../src/testing/index.js'
import { ScriptedSource } from './scripted-source.js'

export type Options = Partial<ConsumeOptions<MemoryTransaction>>

/** Exactly a second, each time. */
export const aSecond: Backoff = { data: { kind: 'constant', baseMs: 1_000, capMs: 1_000 }, delayMs: () => 1_000 }

/** An error whose verdict a test chooses. */
export class Says extends Error {
  readonly verdict: Verdict

  constructor(verdict: Verdict) {
    super(`says ${verdict.why}`)
    this.verdict = verdict
  }
}

export const busy: Error = new Says(transient('busy', 'no'))

export interface World {
  readonly db: MemoryDomain
  readonly clock: ManualClock
  readonly source: ScriptedSource
  readonly consumer: Consumer
  /** What the handler throws, by the id of the message. */
  readonly failing: Map<string, unknown>
  /** The ids that the handler was called with. */
  readonly calls: string[]
  /** The ids of the effects that are committed, in order. */
  effects(): readonly string[]
  /** Works off what is due now. */
  drain(): Promise<unknown>
  /** Moves time, then works off what is due. */
  later(ms: number): Promise<unknown>
  letters(): Promise<readonly Pick<DeadLetter, 'code' | 'state' | 'parks'>[]>
  decide(id: string, decision: Decided['decision']): Promise<boolean>
}

export function world(options: Options = {}, given: { db?: MemoryDomain; source?: ScriptedSource } = {}): World {
  const clock = manualClock()
  const db = given.db ?? memory({ name: 'shop', clock })
  const source = given.source ?? new ScriptedSource()
  db.table('effect', { unique: [['n']] })
  const failing = new Map<string, unknown>()
  const calls: string[] = []
  const consumer = consume(db, {
    name: 'receipts',
    from: source,
    handle: async (tx, { id }) => {
      calls.push(id)
      await tx.upsert('effect', { n: calls.length, id }, ['n'])
      const error = failing.get(id)
      if (error !== undefined) throw error
    },
    backoff: aSecond,
    classify: (error) => (error instanceof Says ? error.verdict : undefined),
    clock,
    ...options,
  })
  const limits = { deadline: deadlineAfter('1d', clock) }
  const { messages } = db as { readonly messages: MessageStore<MemoryTransaction> }
  const drain = (): Promise<unknown> => settled(clock, consumer.drain())
  return {
    db,
    clock,
    source,
    consumer,
    failing,
    calls,
    effects: () => db.rows('effect').map(({ id }) => String(id)),
    drain,
    later: async (ms) => {
      await clock.advance(ms)
      return drain()
    },
    letters: async () =>
      (await messages.letters({ limit: 100 }, limits)).map(({ code, state, parks }) => ({ code, state, parks })),
    decide: (id, decision) =>
      messages.decide(
        { reader: consumer.name, source: '/shop', id },
        { decision, actor: 'a person', reason: 'a test', inMs: 0 },
        limits,
      ),
  }
}

/** Moves the clock until a promise has settled. */
export async function settled<Value>(clock: ManualClock, promise: Promise<Value>): Promise<Value> {
  let over = false
  const ended = promise.finally(() => {
    over = true
  })
  ended.catch(() => undefined)
  for (let steps = 0; !over; steps += 1) {
    if (steps > 2_000) throw new Error('It does not end.')
    await clock.advance(50)
  }
  return ended
}

/** Moves the clock until a condition holds. */
export async function until(clock: ManualClock, holds: () => boolean): Promise<void> {
  for (let steps = 0; !holds(); steps += 1) {
    if (steps > 2_000) throw new Error('It does not come about.')
    await clock.advance(50)
  }
}
