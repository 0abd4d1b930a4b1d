// Bugs that are planted under the operations of a worker, to see that a run finds each of them.

import type pg from 'pg'
import type {
  Engine,
  RecordDraft,
  RecordOutcome,
  Records,
  Seen,
  Session,
  TransactionControls,
} from '../../../src/atomicity/index.js'
import { operationsOf } from '../../../src/idempotency/index.js'
import { deadlineAfter, systemClock, systemRandom } from '../../../src/kernel/index.js'
import { connectionsOf } from '../../../src/stores/postgres/connection/connections.js'
import { postgresEngine } from '../../../src/stores/postgres/engine.js'
import { postgresSchema } from '../../../src/stores/postgres/migrations.js'
import { SqliteEngine } from '../../../src/stores/sqlite/engine.js'
import type { SqliteHandle } from '../../../src/stores/sqlite/index.js'
import type { TransactionDefaults } from '../../../src/transaction/index.js'
import { replaced } from '../replaced.js'

type AnySession = Session<TransactionControls>
type AnyEngine = Engine<TransactionControls> & { readonly records: Records }

/** A bug: what it makes of sessions, and of records. */
interface Bug {
  session?(session: AnySession, records: Records): Partial<AnySession>
  records?(records: Records): Partial<Records>
}

const limits = () => ({ deadline: deadlineAfter('5s') })
const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** The caller hears of a commit that has yet to be made. */
const earlyAnswer: Bug = {
  session(session) {
    let committing: Promise<unknown> = Promise.resolve()
    return {
      commit() {
        committing = later(40)
          .then(() => session.commit())
          .catch(() => undefined)
        return { durability: 'promised' }
      },
      release: (fate) => void committing.then(() => session.release(fate)),
    }
  },
}

/** A COMMIT without an answer is taken for one that went well. */
const hopefulCommit: Bug = {
  session: (session) => ({
    commit: async () => {
      try {
        return await session.commit()
      } catch {
        return { durability: 'promised' }
      }
    },
  }),
}

/** A key that somebody has used is claimed all the same. */
const blindClaim: Bug = {
  session: (session) => ({
    async claim(id, draft) {
      const found = await session.claim(id, draft)
      if (found === undefined || found === 'claimed') return found
      return (await session.reclaim(id, found.record, draft)) ? 'claimed' : found
    },
  }),
}

/** A repeat gets the outcome of whoever was found before. */
function wrongReplay(): Bug {
  let before: string | undefined
  const swapped = <Found extends Pick<Seen, 'record'>>(seen: Found): Found => {
    const { record } = seen
    if (record?.state !== 'succeeded') return seen
    const value = before ?? record.value
    before = record.value
    return { ...seen, record: { ...record, value } }
  }
  return {
    session: (session) => ({
      async claim(id, draft) {
        const found = await session.claim(id, draft)
        return found === undefined || found === 'claimed' ? found : swapped(found)
      },
    }),
    records: (records) => ({ read: async (id, of) => swapped(await records.read(id, of)) }),
  }
}

/** Every claim of somebody else looks like one whose lease is over. */
function expired<Found extends Seen>(seen: Found): Found {
  const { record, nowMs } = seen
  if (record?.state !== 'claimed' || record.mode !== 'leased') return seen
  return { ...seen, record: { ...record, dueAtMs: nowMs - 60_000 } }
}

/** A lease is taken over while it lives, and whoever writes to a record does so whatever has become of it. */
const noFence: Bug = {
  records: (records) => ({
    read: async (id, of) => expired(await records.read(id, of)),
    async insert(id, draft, of) {
      const answer = await records.insert(id, draft, of)
      return answer.written ? answer : expired(answer)
    },
    async swap(id, over, change, of, note) {
      const { record } = await records.read(id, of)
      return records.swap(id, record ?? over, change, of, note)
    },
  }),
}

/** The effect is committed first, and its outcome after it. */
const lateOutcome: Bug = {
  session(session, records) {
    let marker: { id: Parameters<AnySession['record']>[0]; draft: RecordDraft; outcome?: RecordOutcome } | undefined
    return {
      begin: ({ claim: _claim, ...settings }, controls) => session.begin(settings, controls),
      async claim(id, draft) {
        const { record, nowMs } = await records.read(id, limits())
        marker = { id, draft }
        return record === undefined ? 'claimed' : { record, nowMs }
      },
      record(_id, outcome) {
        if (marker !== undefined) marker.outcome = outcome
      },
      async commit() {
        const receipt = await session.commit()
        await later(5)
        if (marker?.outcome === undefined) return receipt
        const { id, draft, outcome } = marker
        const { state, codec = null, value = null, rememberedMs } = outcome
        const { record } = await records.insert(id, draft, limits())
        const change = { state, codec, value, remembered: rememberedMs }
        if (record !== undefined) await records.swap(id, record, change, limits())
        return receipt
      },
    }
  },
}

/** What was done is remembered for a moment only. */
const forgets: Bug = {
  session: (session) => ({ record: (id, outcome) => session.record(id, { ...outcome, rememberedMs: 1 }) }),
}

const bugs: Readonly<Record<string, () => Bug>> = {
  'early-answer': () => earlyAnswer,
  'hopeful-commit': () => hopefulCommit,
  'blind-claim': () => blindClaim,
  'wrong-replay': wrongReplay,
  'no-fence': () => noFence,
  'late-outcome': () => lateOutcome,
  forgets: () => forgets,
}

/** The names of the bugs. */
export const bugNames: readonly string[] = Object.keys(bugs)

function plantedStore(name: string, engine: AnyEngine, defaults: TransactionDefaults): object {
  const bug = (bugs[name] as () => Bug)()
  const records = replaced(engine.records, bug.records?.(engine.records) ?? {})
  const acquire: AnyEngine['acquire'] = async (given) => {
    const session = await engine.acquire(given)
    return replaced(session, bug.session?.(session, engine.records) ?? {})
  }
  const planted = replaced<AnyEngine>(engine, { acquire, records, acquireAtOnce: undefined as never })
  return { ...operationsOf(planted, defaults), name: engine.name, manifest: engine.manifest }
}

/** Operations in PostgreSQL with a bug below them. */
export function plantedPostgres(
  bug: string,
  { pool, name, ...defaults }: TransactionDefaults & { readonly pool: pg.Pool; readonly name: string },
): object {
  const connections = connectionsOf(pool, systemClock)
  const schema = postgresSchema(undefined, undefined, undefined)
  const engine = postgresEngine({ name, connections, schema, clock: systemClock, bind: undefined as never })
  return plantedStore(bug, engine as unknown as AnyEngine, defaults)
}

/** Operations in SQLite with a bug below them. */
export function plantedSqlite(
  bug: string,
  { open, name, ...defaults }: TransactionDefaults & { readonly open: () => SqliteHandle; readonly name: string },
): object {
  const engine = new SqliteEngine({ name, open, bind: undefined, clock: systemClock, random: systemRandom })
  return plantedStore(bug, engine as unknown as AnyEngine, defaults)
}
