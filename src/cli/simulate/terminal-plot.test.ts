import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../../test/property.js'
import { barPanel, colored, fitted, heading, progressBar, resampled, textTable } from './terminal-plot.js'

describe('resampled', () => {
  it('has a column for each value while there is room, and means beyond', () => {
    expect(resampled([1, 2, 3, 4], 4, 10)).toEqual([1, 2, 3, 4])
    expect(resampled([1, 3, 5, 7], 4, 2)).toEqual([2, 6])
  })

  it('ends where nothing was played yet', () => {
    expect(resampled([1, 3, 5], 8, 4)).toEqual([2, 5])
    expect(resampled([undefined, undefined], 2, 2)).toEqual([])
  })
})

describe('barPanel', () => {
  it('draws bars in eighths, the highest to the top', () => {
    const panel = { title: 'queue', values: [0, 4, 8, 16], length: 4, rows: 2, columns: 20, color: 35 as const }
    expect(barPanel(panel, false)).toEqual(['queue', '    16 │   █', '     0 │ ▄██'])
  })

  it('keeps a least height, so that a quiet panel looks quiet', () => {
    const panel = { title: 'x', values: [5, 5], length: 2, rows: 1, columns: 20, color: 32 as const, atLeast: 10 }
    expect(barPanel(panel, false)).toEqual(['x', '    10 │▄▄'])
  })

  it('draws nothing of nothing', () => {
    const panel = { title: 'x', values: [0, 0], length: 2, rows: 1, columns: 20, color: 32 as const }
    expect(barPanel(panel, false)[1]).toBe('     0 │  ')
  })

  it('colours where that is welcome', () => {
    expect(colored('a', 31, true)).toBe('\u001b[31ma\u001b[0m')
    expect(colored('a', 31, false)).toBe('a')
  })
})

describe('fitted', () => {
  it('breaks at spaces, and goes on a little to the right', () => {
    expect(fitted('one two three four\n  five', 13)).toBe('one two three\n  four\n  five')
    expect(fitted('  --attempts N   calls in all', 20)).toBe('  --attempts N\n  calls in all')
    expect(fitted('one two', undefined)).toBe('one two')
    const option = '  --attempts N     how often it is tried in all, the first call included'
    expect(fitted(option, 50)).toBe(
      `  --attempts N     how often it is tried in all,\n${' '.repeat(19)}the first call included`,
    )
  })

  it('breaks words that are too long anywhere', () => {
    expect(fitted('abcdefghijklmnop', 12)).toBe('abcdefghijkl\n  mnop')
    expect(fitted('abcdefgh', 3)).toBe('abc\ndef\ngh')
  })

  const words = fc.array(fc.constantFrom('a', 'bcd', 'efghijk', ' ', '\n', 'lmnopqrstuvwxyz012345'), { maxLength: 40 })
  property('loses nothing, and no line is too long', [words, fc.integer({ min: 1, max: 50 })], (parts, columns) => {
    const text = parts.join(' ')
    const lines = fitted(text, columns).split('\n')
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(columns)
    expect(lines.join('').replace(/ /g, '')).toBe(text.replace(/[ \n]/g, ''))
  })
})

it('heading', () => {
  expect(heading('left, mean of all', 20)).toBe('left, mean of all')
  expect(heading('left, mean of all', 10)).toBe('left')
  expect(heading('left, mean of all', 3)).toBe('lef')
})

it('progressBar', () => {
  expect(progressBar(0.5, 4)).toBe('██░░')
  expect(progressBar(1, 4)).toBe('████')
})

it('textTable', () => {
  expect(
    textTable([
      ['name', 'n'],
      ['a', '10'],
      ['bcdef', '1'],
    ]),
  ).toBe('name    n\na      10\nbcdef   1\n')
})
