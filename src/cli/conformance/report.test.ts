import { expect, it } from 'vitest'
import { reportText } from './report.js'

const facts = (id: string) => ({ id, title: `MUST ${id}`, proves: `so that ${id}` })

it('tells failures with what was seen, what is not offered by its reason, and the counts', () => {
  const text = reportText(
    [
      { ...facts('http-01'), outcome: 'passed' },
      { ...facts('http-02'), outcome: 'failed', why: 'the repeat: 500' },
      { ...facts('http-03'), outcome: 'not offered', why: 'there is no POST /slow' },
      { ...facts('http-04'), outcome: 'not offered', why: 'there is no POST /slow' },
    ],
    0,
  )
  expect(text).toBe(
    [
      'failed       http-02  MUST http-02',
      '             seen: the repeat: 500',
      '             so:   so that http-02',
      'not offered  http-03, http-04: there is no POST /slow',
      '1 passed, 1 failed, 2 not offered\n',
    ].join('\n'),
  )
})

it('tells how many were not begun', () => {
  expect(reportText([], 3)).toBe('0 passed, 0 failed, 0 not offered, 3 not begun\n')
})
