import { expect, it } from 'vitest'
import type { StoredKey } from '../../../identity/index.js'
import { deadlineAfter } from '../../../kernel/index.js'
import type { SqlDialect } from '../dialect.js'
import { postgresDialect } from '../dialects/postgres.js'
import { sqliteDialect } from '../dialects/sqlite.js'
import { type RecordRunner, SqlRecords } from './records.js'
import { type Query, RecordStatements } from './statements.js'

const limits = { deadline: deadlineAfter('1s') }

/** Records of which only the statements are looked at; on real stores they are run by the conformance suite. */
function inspected(dialect: SqlDialect) {
  const sent: (readonly [text: string, values: readonly unknown[]])[] = []
  const runner: RecordRunner = {
    async read({ text, values }: Query) {
      sent.push([text, values])
      return []
    },
    write: () => expect.unreachable('looking around writes nothing'),
  }
  const tables = { marker: '"marker"', audit: '"audit"', window: '"window"', seen: '"seen"', nextFence: '1' }
  return { sent, records: new SqlRecords(new RecordStatements(dialect, tables), runner).inspection }
}

it.each([
  ['PostgreSQL', postgresDialect, ['$1', '$2', '$3']],
  ['SQLite', sqliteDialect, ['?', '?', '?']],
] as const)(
  'has a place for each value, in order, in the words of %s',
  async (_name, dialect, [first, second, third]) => {
    const { records, sent } = inspected(dialect)
    await records.list({ limit: 7, state: 'unknown', operation: 'pay', after: 'k' as StoredKey }, limits)
    await records.list({ limit: 7 }, limits)
    await records.live('scope', 9, limits)
    await records.notes('k' as StoredKey, limits)
    const [wanted, all, live, notes] = sent
    expect(wanted?.[0]).toContain(
      `m.state = ${first} AND m.operation = ${second} AND m.id > ${third} ORDER BY m.id LIMIT 7`,
    )
    expect(wanted?.[1]).toEqual(['unknown', 'pay', 'k'])
    expect(all).toEqual([expect.stringContaining('FROM "marker" AS m WHERE 1 = 1 ORDER BY m.id LIMIT 7'), []])
    expect(live).toEqual([expect.stringMatching(/scope = (\$1|\?) .* LIMIT 9\)/), ['scope']])
    expect(notes).toEqual([expect.stringContaining(`FROM "audit" WHERE id = ${first} ORDER BY number`), ['k']])
  },
)

it.each([0, -1, 1.5, 1_001, Number.NaN])('refuses a limit of %d rows before anything is sent', async (limit) => {
  const { records, sent } = inspected(sqliteDialect)
  await expect(records.list({ limit }, limits)).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
  await expect(records.live('scope', limit > 1_000 ? 1_000_001 : limit, limits)).rejects.toMatchObject({
    code: 'ARGUMENT_INVALID',
  })
  expect(sent).toEqual([])
})
