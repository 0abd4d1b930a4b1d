import Libsql from 'libsql'
import { describe, expect, it } from 'vitest'
import type { Emission } from '../../../atomicity/index.js'
import { postgresDialect } from '../dialects/postgres.js'
import { sqliteDialect } from '../dialects/sqlite.js'
import { perform } from '../records/procedures.js'
import type { Query } from '../records/statements.js'
import { EmitStatements, emitError } from './emit.js'
import { messageIndexNames, messageStatements, messageTableNames, messageTables } from './migration.js'

const named = (table: string): string => `"reprise_${table}"`
const emission = (key: string, otherwise: Partial<Emission> = {}): Emission => ({
  id: `${key}-${Math.abs(JSON.stringify(otherwise).length)}`,
  type: 'placed',
  subject: key,
  key,
  version: undefined,
  afterMs: 0,
  intent: undefined,
  traceparent: undefined,
  schema: undefined,
  codec: undefined,
  data: 'null',
  ...otherwise,
})

describe('where the engine writes inside WITH', () => {
  const statements = new EmitStatements(postgresDialect, named, '/shop')

  const placesIn = (text: string): readonly number[] =>
    [...new Set([...text.matchAll(/\$(\d+)/g)].map(([, place]) => Number(place)))].sort((a, b) => a - b)

  it('is one statement for several messages, of one text, with its values as text', () => {
    const many = statements.atOnce([emission('b', { id: '1' }), emission('a', { id: '2' }), emission('b', { id: '3' })])
    expect(many.text).toBe(statements.atOnce([emission('a'), emission('c')]).text)
    expect(placesIn(many.text)).toEqual([1, 2, 3])
    const [keys, source, rows] = many.values
    expect([JSON.parse(keys ?? ''), source]).toEqual([
      [
        ['b', 2, 0],
        ['a', 1, 0],
      ],
      '/shop',
    ])
    // How many of its key come after each.
    expect((JSON.parse(rows ?? '') as unknown[][]).map((row) => [row[0], row[9]])).toEqual([
      ['1', 1],
      ['2', 0],
      ['3', 0],
    ])
  })

  it('has one text for a single message, with each cell as a value of its own', () => {
    const one = statements.atOnce([emission('a', { id: '1', afterMs: 5 })])
    expect(one.text).toBe(statements.atOnce([emission('b', { version: 7 })]).text)
    expect(one.text).not.toContain('jsonb')
    expect(placesIn(one.text)).toEqual(one.values.map((_, place) => place + 1))
    const nothing = [null, null, null, null]
    expect(one.values).toEqual(['a', '1', '5', '/shop', '1', 'placed', 'a', 'a', null, ...nothing, '0', 'null'])
  })

  it('locks heads and lanes in the order of their keys', () => {
    const { text } = statements.atOnce([emission('a'), emission('b')])
    expect(text).toMatch(/ORDER BY k\.key\s+ON CONFLICT \(key\)/)
    expect(text).toMatch(/ORDER BY h\.key, r\.name\s+ON CONFLICT \(reader, key\)/)
  })
})

describe('step by step', () => {
  const statements = new EmitStatements(sqliteDialect, named, '/shop')
  const types = { text: 'TEXT', integer: 'INTEGER', bigint: 'INTEGER' }

  function database() {
    const file = new Libsql(':memory:')
    for (const statement of messageStatements(types, messageTables(named), named)) file.exec(statement)
    file.exec('CREATE TABLE "reprise_fence" (one INTEGER PRIMARY KEY, number INTEGER)')
    file.exec('INSERT INTO "reprise_fence" VALUES (1, 0)')
    const sent: Query[] = []
    const emit = (...emissions: Emission[]): void =>
      perform(statements.emitted(emissions), (query) => {
        sent.push(query)
        const statement = file.prepare(query.text)
        if (query.counts !== true) {
          const rows = statement.all(...query.values) as Record<string, unknown>[]
          return { rows, rowCount: rows.length }
        }
        return { rows: [], rowCount: statement.run(...query.values).changes }
      })
    return { file, sent, emit }
  }

  it('takes a number of the fence for new heads alone, and three statements for heads that are there', () => {
    const { file, sent, emit } = database()
    emit(emission('a'))
    expect(sent).toHaveLength(5)
    sent.length = 0
    emit(emission('a', { id: 'second' }))
    expect(sent).toHaveLength(3)
    expect(file.prepare('SELECT number FROM "reprise_fence"').get()).toMatchObject({ number: 1 })
    expect(file.prepare('SELECT epoch, number FROM "reprise_head"').get()).toMatchObject({ epoch: 1, number: 2 })
  })

  it('finds heads and lanes by their keys, without reading the tables', () => {
    const { file, sent, emit } = database()
    emit(emission('a', { version: 1 }))
    emit(emission('a', { id: 'second', version: 2 }))
    const plans = sent.flatMap(({ text, values }) => {
      const plan = file.prepare(`EXPLAIN QUERY PLAN ${text}`).all(...values) as { detail: string }[]
      return plan.map(({ detail }) => detail)
    })
    expect(plans.filter((detail) => /SCAN (?:h|l|m)\b/.test(detail))).toEqual([])
    expect(plans.some((detail) => /SEARCH h\b/.test(detail))).toBe(true)
  })

  it('says what was taken: an id, or a version', () => {
    const { emit } = database()
    const codeOf = (...emissions: Emission[]): unknown => {
      try {
        emit(...emissions)
      } catch (error) {
        return (emitError(error) as { code?: unknown }).code
      }
      return undefined
    }
    emit(emission('a', { id: 'x', version: 1 }))
    expect(codeOf(emission('b', { id: 'x' }))).toBe('MESSAGE_EXISTS')
    expect(codeOf(emission('a', { id: 'y', version: 1 }))).toBe('VERSION_TAKEN')
  })
})

it('leaves every other error as it is', () => {
  const other = Object.assign(new Error('UNIQUE constraint failed: orders.source'), { constraint: 'orders_pkey' })
  expect(emitError(other)).toBe(other)
  const wrapped = new Error('of an ORM', {
    cause: Object.assign(new Error('duplicate key'), { constraint: 'reprise_message_identity' }),
  })
  expect(emitError(wrapped)).toMatchObject({ code: 'MESSAGE_EXISTS', cause: wrapped })
  const ofPrisma = Object.assign(new Error('of Prisma'), {
    meta: { driverAdapterError: { cause: { constraint: { index: 'reprise_message_version' } } } },
  })
  expect(emitError(ofPrisma)).toMatchObject({ code: 'VERSION_TAKEN', cause: ofPrisma })
})

it('names every table and every index that the migration makes', () => {
  const made = messageStatements({ text: 't', integer: 'i', bigint: 'b' }, messageTables(named), named)
  const names = made.map((text) => /^CREATE (?:UNIQUE )?(?:TABLE|INDEX) "reprise_(\w+)"/.exec(text)?.[1]).sort()
  expect(names).toEqual([...messageTableNames, ...messageIndexNames].sort())
})
