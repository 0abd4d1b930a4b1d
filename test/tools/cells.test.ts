// The table of cells is whole: every test file of the library belongs to a cell, and every cell has files or says who
// runs it.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { cellOf, cells, longCells } from '../../tools/cells.mjs'
import { repositoryFiles } from '../../tools/repository-files.mjs'
import { reportOf } from '../../tools/test-report.mjs'
import { root } from './repository-copy.js'

const testFiles = repositoryFiles(root).filter(
  (path) => path.endsWith('.test.ts') && !path.includes('/fixtures/') && existsSync(join(root, path)),
)

it('every test file has a cell, and every cell has files, or is run by test:matrix', () => {
  expect(testFiles.filter((path) => cellOf(path) === undefined)).toEqual([])
  const used = new Set(testFiles.map(cellOf))
  const empty = cells.filter(({ name, matrix }) => !used.has(name) && matrix === undefined)
  expect(empty).toEqual([])
  expect(longCells.filter((path) => !testFiles.includes(path))).toEqual([])
})

it('the report tells what each group took, the slowest files, and what became of each cell', () => {
  const time = (path: string, startMs: number, endMs: number, skipped = 0) => {
    const reasons = skipped > 0 ? ['PostgreSQL: only root can install it'] : []
    return { group: path.startsWith('src') ? 'unit' : 'stores', path, startMs, endMs, tests: 3, skipped, reasons }
  }
  const files = [
    ...Array.from({ length: 20 }, (_, index) => time(`src/a${index}.test.ts`, 0, 1_000 + index)),
    time('test/stores/memory/model.test.ts', 2_000, 9_000),
    time('test/stores/postgres/claim.test.ts', 2_000, 8_000, 2),
  ]
  const report = reportOf(files, { whole: true }).split('\n')
  expect(report.slice(0, 3)).toEqual([
    'groups',
    '  unit          1.0 s  20 files, 60 tests, 20.2 s one after the other',
    '  stores        7.0 s  2 files, 6 tests, 13.0 s one after the other',
  ])
  expect(report[4]).toBe('the 20 slowest files')
  expect(report[5]).toBe('      7.0 s  test/stores/memory/model.test.ts')
  const cell = (name: string): string | undefined => report.find((line) => line.startsWith(`  ${name} `))?.trim()
  expect(cell('memory')).toMatch(/^memory +3 run$/)
  expect(cell('PostgreSQL,')).toMatch(/1 run, 2 skipped \(PostgreSQL: only root can install it\)$/)
  expect(cell('callback:')).toMatch(/NOT RUN$/)
  expect(cell('other versions of Node')).toMatch(/test:matrix: everything on each of them$/)
  expect(reportOf(files.slice(0, 2), { whole: false })).not.toMatch(/slowest|cells/)
})
