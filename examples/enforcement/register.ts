// The service downstream: a register of actions, in a database of its own. Events reach it at least once, and each is
// entered once.

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { type Consumer, consume } from 'reprise/messaging'
import { type SqliteDomain, sqlite } from 'reprise/stores/sqlite'
import { consumerDuplicate } from 'reprise/telemetry'
import type { Action } from './actions.js'
import { HttpSource } from './wire.js'

// No constraint would stop a second entry: what keeps it out is the consumer.
const entryTable = 'create table if not exists entry (case_id text, violation_code text, number integer)'

/** The register, open. */
export interface Register {
  /** Takes what is sent to it. */
  readonly source: HttpSource
  readonly consumer: Consumer
  /** How many entries there are. */
  entries(): Promise<number>
  close(): Promise<void>
}

/** What is told of what arrives. */
export type Arriving = 'wire' | 'duplicate'

/** Opens the register. @param told Is told of each event that arrives, and of each that had been entered before. */
export async function openRegister(file: string, told: (what: Arriving) => void): Promise<Register> {
  const db = sqlite({ name: 'register', file })
  await db.migrate()
  await db.transact((tx) => tx.query(entryTable))
  const source = new HttpSource(() => told('wire'))
  const consumer = consume(db, {
    name: 'register',
    from: source,
    // The sender may repeat for as long as it keeps the event. It is remembered for longer.
    redelivered: '7d',
    memory: '8d',
    handle: async (tx, { data }) => {
      const { caseId, violationCode, number } = data as Action
      await tx.query('insert into entry values (?, ?, ?)', [caseId, violationCode, number])
    },
  })
  const dropped = (): void => told('duplicate')
  subscribe(consumerDuplicate.name, dropped)
  const close = async (): Promise<void> => {
    unsubscribe(consumerDuplicate.name, dropped)
    await db.close()
  }
  return { source, consumer, entries: () => entriesIn(db), close }
}

async function entriesIn(db: SqliteDomain<unknown>): Promise<number> {
  const { rows } = await db.transact((tx) => tx.query<{ entries: unknown }>('select count(*) as entries from entry'), {
    readOnly: true,
  })
  return Number(rows[0]?.entries)
}
