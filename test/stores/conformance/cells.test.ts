import { expect, it } from 'vitest'
import { type CellOutcome, tableOf } from './cells.js'

it('the table tells what was run, refused, failed, and left out', () => {
  const outcomes: Readonly<Record<string, CellOutcome>> = { a: 'passed', b: 'refused: no clock', c: 'FAILED' }
  const cases = ['a', 'b', 'c', 'd'].map((id) => ({ id, title: `MUST ${id}` }))
  const lines = tableOf(cases, ['memory'], ({ id }) => outcomes[id]).split('\n')
  expect(lines.map((line) => line.split(/\s{2,}/))).toEqual([
    ['', 'memory', ''],
    ['a', 'run', 'MUST a'],
    ['b', 'refused [1]', 'MUST b'],
    ['c', 'FAILED', 'MUST c'],
    ['d', 'not run', 'MUST d'],
    ['[1] no clock'],
  ])
})
