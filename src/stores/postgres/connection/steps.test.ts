import { expect, it } from 'vitest'
import type { PostgresPoolClient } from '../options.js'
import { ownStatement } from './batch.js'
import { countOf, sendEach } from './steps.js'

it.each([
  ['pg', null],
  ['pg-native', Number.NaN],
])('the tag of a command without rows is the command alone, as %s counts', async (_, rowCount) => {
  const query = async (text: string) => ({ rows: [], command: text, rowCount: text === 'COMMIT' ? rowCount : 1 })
  const client = { query } as unknown as PostgresPoolClient
  const steps = ['UPDATE', 'COMMIT'].map((text) => ({ statement: ownStatement(text), values: [] }))
  const answers = await sendEach(client, steps)
  expect(answers.map(({ tag }) => tag)).toEqual(['UPDATE 1', 'COMMIT'])
  expect(countOf(answers[0])).toBe(1)
})
