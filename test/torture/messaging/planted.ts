// Bugs that are planted into a worker's relay, consumers and emits, to see that a run finds each of them.

import { randomUUID } from 'node:crypto'
import { deadlineAfter } from '../../../src/kernel/index.js'
import type {
  ClaimedLane,
  ConsumerDomain,
  Delivery,
  MessageDraft,
  Publisher,
  RelayDomain,
  Source,
} from '../../../src/messaging/index.js'
import { replaced } from '../replaced.js'
import type { handlerOf, Sql, Transaction } from './definitions.js'

/** A domain, as far as relays, consumers and bodies need it. */
export type Store = ConsumerDomain<Transaction & never> & RelayDomain
type Messages = Store['messages']
type Handler = ReturnType<typeof handlerOf>
type Transact = <Result>(body: (tx: Transaction) => Promise<Result>) => Promise<Result>

/** What a bug makes of the parts of a worker; what it leaves out stays as it is. */
export interface Bug {
  /** The domain that relay and consumers get. */
  store?(db: Store, sql: Sql): Partial<Store>
  publisher?(publisher: Publisher): Publisher
  source?(source: Source): Source
  handler?(handler: Handler, transact: Transact): Handler
  /** The transaction of an intent without a key. */
  transact?(transact: Transact): Transact
  /** For how long it is remembered what was processed, by consumers and purges, in ms. */
  readonly memoryMs?: number
}

const limits = () => ({ deadline: deadlineAfter('5s') })
const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const onMessages = (change: (messages: Messages, db: Store, sql: Sql) => Partial<Messages>): Bug => ({
  store: (db, sql) => ({ messages: replaced(db.messages, change(db.messages, db, sql)) }),
})

/** The relay writes that lanes are done, and publishes after it. */
const markBeforePublish = onMessages((messages) => ({
  async claim(query, of) {
    const claimed = await messages.claim(query, of)
    if (query.reader.kind === 'consumer') return claimed
    const { reader, owner } = query
    const then = { is: 'free' } as const
    const ends = claimed.lanes.map(({ key, attempt, messages: own }) => {
      return { reader, key, attempt, owner, done: own.at(-1)?.place, then }
    })
    await messages.end(ends, limits())
    return claimed
  },
}))

/** Messages whose rows somebody else has locked are passed over, as by SKIP LOCKED, and those behind them are taken. */
const slidesPastHead = onMessages((messages) => ({
  async claim(query, of) {
    const claimed = await messages.claim(query, of)
    const slid = (lane: ClaimedLane): ClaimedLane =>
      lane.messages.length > 1 && Math.random() < 0.05 ? { ...lane, messages: lane.messages.slice(1) } : lane
    return { ...claimed, lanes: claimed.lanes.map(slid) }
  },
}))

/** Whoever has handled a message says so, whoever owns its lane by now. */
const noAttemptCheck: Bug = {
  store(db, sql) {
    const { messages } = db
    const endIn: Messages['endIn'] = async (tx, end) => {
      if (await messages.endIn(tx, end)) return true
      const text = sql('select owner, attempt from reprise_lane where reader = ? and key = ?')
      const { rows } = await (tx as Transaction).query(text, [end.reader.name, end.key])
      const { owner, attempt } = rows[0] ?? {}
      await messages.endIn(tx, { ...end, owner: String(owner ?? ''), attempt: Number(attempt) })
      return true
    }
    return {
      messages: replaced(messages, { endIn }),
      transact: (body, { signal: _, ...options }) => db.transact(body, options),
    }
  },
}

/** What nobody answered for is taken for confirmed. */
const hopefulPublish: Bug = {
  publisher: (publisher) => ({
    ...publisher,
    publish: async (messages, of) =>
      (await publisher.publish(messages, of)).map((answer) =>
        answer.is === 'unknown' ? { is: 'confirmed' as const } : answer,
      ),
  }),
}

/** A message that is published again has another id. */
const newIds: Bug = {
  publisher: (publisher) => ({
    ...publisher,
    publish: (messages, of) =>
      publisher.publish(
        messages.map((message) => ({ ...message, id: randomUUID() })),
        of,
      ),
  }),
}

/** A delivery is acknowledged when it comes, and handled after it. */
const ackBeforeCommit: Bug = {
  source: (source) => ({
    ...source,
    open: (receive, of) =>
      source.open(async (delivery: Delivery) => {
        await delivery.ack().catch(() => undefined)
        const none = async (): Promise<void> => undefined
        await receive({ ...delivery, ack: none, again: none, extend: none })
      }, of),
  }),
}

/** The effect of a message is in a transaction of its own, behind the one that says that it was processed. */
const effectApart: Bug = {
  handler: (handler, transact) => async (_tx, message) => {
    void later(30)
      .then(() => transact((tx) => handler(tx, message)))
      .catch(() => undefined)
  },
}

/** Messages are emitted when the effect that caused them is committed. */
const emitApart: Bug = {
  transact: (transact) => async (body) => {
    const kept: MessageDraft[] = []
    const emit = async (given: MessageDraft | readonly MessageDraft[]): Promise<unknown> => {
      const drafts = [given].flat().map((draft) => ({ ...draft, id: randomUUID() }))
      kept.push(...drafts)
      const ids = drafts.map(({ id }) => id)
      return Array.isArray(given) ? ids : ids[0]
    }
    const result = await transact((tx) => body(replaced(tx, { emit } as Partial<Transaction>)))
    await later(20)
    await transact((tx) => tx.emit(kept))
    return result
  },
}

const bugs: Readonly<Record<string, Bug>> = {
  'mark-before-publish': markBeforePublish,
  'slides-past-head': slidesPastHead,
  'no-attempt-check': noAttemptCheck,
  'hopeful-publish': hopefulPublish,
  'new-ids': newIds,
  'ack-before-commit': ackBeforeCommit,
  'effect-apart': effectApart,
  'emit-apart': emitApart,
  'short-memory': { memoryMs: 1 },
}

/** The names of the bugs. */
export const bugNames: readonly string[] = Object.keys(bugs)

/** The bug of a name; none without one. */
export function bugOf(name: string | undefined): Bug {
  return name === undefined ? {} : (bugs[name] as Bug)
}
