// The tables of the pages about faults: written by the tests that ran them, and compared with what stands there.

import { readFileSync, writeFileSync } from 'node:fs'
import { expect } from 'vitest'
import { withTable } from '../../docs-tables.js'
import { root } from '../../markdown.js'

const folder = `${root}/docs/reference`

/** Rows that differ in their store alone become one, with both stores in the place of one. Both must be there. */
export function joinStores(rows: readonly (readonly string[])[], column: number): string[][] {
  const joined = new Map<string, { cells: string[]; stores: string[] }>()
  for (const row of rows) {
    const cells = row.map((cell, index) => (index === column ? '' : cell))
    const entry = joined.get(cells.join('|')) ?? { cells, stores: [] }
    joined.set(cells.join('|'), entry)
    entry.stores.push(row[column] ?? '')
  }
  return [...joined.values()].map(({ cells, stores }) =>
    cells.map((cell, index) => (index === column ? [...new Set(stores)].sort().join(', ') : cell)),
  )
}

/** Compares a table of a page with what the test found; with REPRISE_WRITE_DOCS=1 it is written first. */
export function keepTable(
  name: string,
  head: readonly string[],
  rows: readonly (readonly string[])[],
  file: 'operation-faults.md' | 'message-faults.md' = 'operation-faults.md',
): void {
  const page = `${folder}/${file}`
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const lines = [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)]
  console.log(lines.join('\n'))
  if (process.env['REPRISE_WRITE_DOCS'] === '1') {
    writeFileSync(page, withTable(readFileSync(page, 'utf8'), name, lines))
  }
  const text = readFileSync(page, 'utf8')
  expect(text, 'stale: run this test with REPRISE_WRITE_DOCS=1').toBe(withTable(text, name, lines))
}
