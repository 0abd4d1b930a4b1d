import { expect, it } from 'vitest'
import { postgresDialect } from './dialects/postgres.js'
import { sqlSequences } from './sequences.js'

it('opens no epoch of a row that is gone every time, and says so', async () => {
  const asked: string[] = []
  const gone = {
    query: async (text: string) => {
      asked.push(text.slice(0, 6))
      return { rows: [], rowCount: 0 }
    },
  }
  const opened = sqlSequences(postgresDialect, (table) => table).open(gone, { sequence: 'orders', producer: 'till' })
  await expect(opened).rejects.toMatchObject({ code: 'ROW_UNSETTLED', details: { rounds: 4 } })
  expect(asked.filter((text) => text === 'UPDATE')).toHaveLength(4)
})
