import { expect, it } from 'vitest'
import type { Emission } from '../../../atomicity/index.js'
import { deadlineAfter } from '../../../kernel/index.js'
import type { LaneEnd } from '../../../messaging/index.js'
import { postgresDialect } from '../dialects/postgres.js'
import { sqliteDialect } from '../dialects/sqlite.js'
import type { SqlAnswer } from '../executor.js'
import { perform } from '../records/procedures.js'
import type { RecordRunner } from '../records/records.js'
import { claiming } from './claim.js'
import { EmitStatements } from './emit.js'
import { messageTables } from './migration.js'
import { sqlMessages } from './store.js'

const emission: Emission = {
  id: 'm-1',
  type: 'order.placed',
  subject: 'order/1',
  key: 'order/1',
  version: undefined,
  afterMs: 0,
  intent: undefined,
  traceparent: undefined,
  schema: undefined,
  codec: undefined,
  data: '{}',
}
const reader = { name: 'shop', kind: 'relay', reads: 'outbox' } as const
const limits = { deadline: deadlineAfter('1m') }

// A runner that writes down what it is asked, and answers with nothing.
function asked(dialect: typeof postgresDialect) {
  const texts: string[] = []
  const runner: RecordRunner = {
    read: async ({ text }) => {
      texts.push(text)
      return []
    },
    write: async (procedure) =>
      perform(procedure(), ({ text }) => {
        texts.push(text)
        return { rows: [], rowCount: 0 }
      }),
  }
  return { texts, messages: sqlMessages(dialect, (table) => table, runner) }
}

it('writes what was emitted in one statement where WITH may write, and step by step elsewhere', () => {
  const statementsOn = (dialect: typeof postgresDialect): number => {
    const answer = { rows: [{ key: 'order/1', epoch: 1, number: 1 }], rowCount: 1 }
    let statements = 0
    perform(new EmitStatements(dialect, (table) => table, '/shop').emitted([emission]), () => {
      statements += 1
      return answer
    })
    return statements
  }
  expect(statementsOn(postgresDialect)).toBe(1)
  expect(statementsOn(sqliteDialect)).toBeGreaterThan(1)
})

it('claims lanes that nobody else has locked, and never passes over a message', async () => {
  const { texts, messages } = asked(postgresDialect)
  const query = { reader, owner: 'me', leaseMs: 1_000, lanes: 5, perLane: 5 }
  expect(await messages.claim(query, limits)).toMatchObject({ lanes: [] })
  const [claim = ''] = texts
  expect(claim.match(/SKIP LOCKED/g)).toHaveLength(1)
  expect(claim.indexOf('SKIP LOCKED')).toBeLessThan(claim.indexOf('FROM message'))
})

it('claims again where all that it found was written meanwhile, and only so often', async () => {
  const query = { reader, owner: 'me', leaseMs: 1_000, lanes: 5, perLane: 5 }
  const sql = { dialect: postgresDialect, tables: messageTables((table) => table) }
  const none = { next_in_ms: null, lane_key: null, passed_over: null }
  const claimsUntil = (...answers: readonly object[]): number => {
    let claims = 0
    perform(claiming(sql, query), () => {
      const rows = [answers[claims] ?? none] as SqlAnswer['rows']
      claims += 1
      return { rows, rowCount: 1 }
    })
    return claims
  }
  const passedOver = { ...none, passed_over: 1 }
  expect(claimsUntil(none)).toBe(1)
  expect(claimsUntil(passedOver)).toBe(2)
  expect(claimsUntil(passedOver, passedOver, passedOver, passedOver)).toBe(3)
})

it('ends one lane without a list of lanes, and locks several in the order of their keys', async () => {
  const { texts, messages } = asked(postgresDialect)
  const then = { is: 'free' } as const
  const free = (key: string): LaneEnd => ({ reader, key, owner: 'me', attempt: 1, done: undefined, then })
  await messages.end([free('a')], limits)
  await messages.end([free('a'), free('b')], limits)
  expect(texts.map((text) => /jsonb_array_elements/.test(text))).toEqual([false, true])
  expect(texts.map((text) => /ORDER BY l\.key, l\.reader FOR UPDATE/.test(text))).toEqual([false, true])
})

it('asks for nothing where there is nothing to end', async () => {
  const { texts, messages } = asked(postgresDialect)
  expect(await messages.end([], limits)).toEqual([])
  expect(texts).toEqual([])
})
