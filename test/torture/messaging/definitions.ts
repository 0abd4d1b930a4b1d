// What is emitted, relayed and handled under torture, defined alike in every worker.

import { randomUUID } from 'node:crypto'
import { fail, type Operation, type Operations } from '../../../src/idempotency/index.js'
import { parseKey, scope } from '../../../src/identity/index.js'
import type { Emits, Message } from '../../../src/messaging/index.js'
import { transient, when } from '../../../src/retry/index.js'

/** Who reads the messages: a relay, a consumer of the outbox, and one of what the relay has published. */
export const readers = { relay: 'out', direct: 'direct', delivered: 'delivered' } as const

/** The name of a consumer. */
export type ConsumerName = 'direct' | 'delivered'

/**
 * What is special about a message. `poison`: no handler takes it until somebody has mended it. `refused`: nor does the
 * broker. `dropped`: it is emitted in a savepoint that is rolled back, and nobody is ever to see it.
 */
export type MessageWay = 'plain' | 'poison' | 'refused' | 'dropped'

/** The data of a message. */
export interface MessageData {
  readonly intent: string
  /** Which one of its intent. */
  readonly n: number
  /** Names the run of the body that emitted it. */
  readonly run: string
  readonly round: number
  readonly way: MessageWay
}

/** A message that is wanted. */
export interface Wanted {
  readonly key: string
  readonly way: MessageWay
  /** Whether it is delivered after a while, in order with no other. */
  readonly later: boolean
}

/** One call for an intent, as it is sent to a worker. */
export interface Order {
  readonly intent: string
  readonly round: number
  /** Whether it is an operation, which can be called again, or a transaction without a key. */
  readonly keyed: boolean
  readonly messages: readonly Wanted[]
  /** How it ends: with all messages; in a final failure; or in an error, each time this way is drawn. */
  readonly ends: 'done' | 'refused'
  readonly way: 'plain' | 'slow' | 'throws'
}

/** The tables of the run: what intents have done, what consumers have done, and which rounds were mended. */
export const tables: readonly string[] = [
  'create table emitted (intent text not null, run text not null, round bigint not null)',
  'create index emitted_round on emitted (round)',
  `create table handled (reader text not null, key text not null, position bigint not null, id text not null,
    intent text not null, n bigint not null, run text not null, round bigint not null,
    epoch bigint not null, number bigint not null)`,
  'create index handled_key on handled (reader, key)',
  'create index handled_round on handled (round)',
  'create table mended (round bigint not null)',
]

/** What bodies need of a transaction. */
export interface Transaction extends Emits {
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly Record<string, unknown>[] }>
  savepoint<Result>(work: () => Promise<Result>): Promise<Result>
}

/** SQL with the parameters of an engine. */
export type Sql = (text: string) => string

class Refused extends Error {}
class Busy extends Error {}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
const laterMs = 300

/** The body of an intent: its effect and its messages, whose ids it gives. */
export async function emitting(tx: Transaction, order: Order, sql: Sql): Promise<string> {
  const { intent, round, messages, ends, way } = order
  const run = randomUUID()
  await tx.query(sql('insert into emitted (intent, run, round) values (?, ?, ?)'), [intent, run, round])
  const drafts = messages.map(({ key, way: special, later }, n) => {
    const data: MessageData = { intent, n, run, round, way: special }
    return { type: 'tortured', subject: key, data, ...(later ? { after: laterMs } : {}) }
  })
  const [first, ...others] = drafts.filter((_, n) => messages[n]?.way !== 'dropped')
  const dropped = drafts.filter((_, n) => messages[n]?.way === 'dropped')
  const ids = first === undefined ? [] : [await tx.emit(first)]
  if (dropped.length > 0) {
    const undone = tx.savepoint(async () => {
      await tx.emit(dropped)
      throw new Refused()
    })
    await undone.catch((error: unknown) => {
      if (!(error instanceof Refused)) throw error
    })
  }
  if (way === 'slow') await pause(20)
  if (others.length > 0) ids.push(...(await tx.emit(others)))
  if (way === 'throws') throw new Error('an error of no meaning')
  if (ends === 'refused') throw new Refused()
  return ids.join(',')
}

/** The operation of intents that can be called again. */
export function emitOperation(db: Operations<never>, sql: Sql): Operation<Order, string, 'refused'> {
  const operation = (db as unknown as Operations<Transaction & never>).operation('emit', {
    scope: () => scope('torture'),
    key: ({ intent }: Order) => parseKey(intent),
    content: ({ intent }: Order) => ({ value: intent }),
    window: '1h',
    failures: ['refused'],
    wait: '4s',
    terminal: (error: unknown) => (error instanceof Refused ? fail('refused') : undefined),
    run: (tx: Transaction, order: Order) => emitting(tx, order, sql),
  } as never)
  return operation as unknown as Operation<Order, string, 'refused'>
}

/** What errors of handlers mean: some pass, the others do not. */
export const classify = when((error) => error instanceof Busy, transient('busy', 'no'))

/**
 * The handler of a consumer: one row for each message, with how many of its key there were before.
 *
 * @param chance How it is decided that it is slow or fails for this time, both when it is low.
 */
export function handlerOf(reader: ConsumerName, sql: Sql, chance: () => number) {
  return async (tx: Transaction, message: Message<MessageData>): Promise<void> => {
    const { id, key, place, data } = message
    const { intent, n, run, round, way } = data
    const before = await tx.query(sql('select count(*) as n from handled where reader = ? and key = ?'), [reader, key])
    const values = [reader, key, Number(before.rows[0]?.['n']), id, intent, n, run, round]
    const columns = 'reader, key, position, id, intent, n, run, round, epoch, number'
    const insert = sql(`insert into handled (${columns}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
    await tx.query(insert, [...values, place?.epoch ?? 0, place?.number ?? 0])
    // Long enough for somebody to be stopped meanwhile.
    if (chance() < 0.02) await pause(100)
    if (chance() < 0.03) throw new Busy()
    if (way !== 'poison') return
    const mended = await tx.query(sql('select round from mended where round = ?'), [round])
    if (mended.rows.length === 0) throw new TypeError('Nobody can handle it.')
  }
}
