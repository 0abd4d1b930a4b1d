import { expect, it } from 'vitest'
import { addedColumns, auditColumns, hasDue, hasEnd } from './migration.js'
import { recordColumns } from './rows.js'

const types = { text: 'T', integer: 'I', bigint: 'B' }
const nameOf = (definition: string): string => definition.split(' ')[0] ?? ''

it('adds what a marker of the first format lacks to be a record, and nothing else', () => {
  const before = ['format', 'value', 'claimed_at_ms']
  const added = addedColumns(types).map(nameOf)
  expect([...before, ...added].sort()).toEqual([...recordColumns].sort())
})

it('can be applied while rows are there: what must not be empty has a default', () => {
  const strict = addedColumns(types).filter((definition) => definition.includes('NOT NULL'))
  expect(strict.length).toBeGreaterThan(0)
  for (const definition of strict) expect(definition).toMatch(/ DEFAULT (\d+|'\w+')$/)
})

it('indexes columns that are there, and dates every audit note', () => {
  const columns: readonly string[] = recordColumns
  for (const condition of [hasDue, hasEnd]) expect(columns).toContain(nameOf(condition))
  expect(auditColumns(types)).toContain('at_ms B NOT NULL')
})
