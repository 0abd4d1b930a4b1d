import { expect, it } from 'vitest'
import { httpCases } from '../http-cases.js'
import { comparisonCases } from './comparison-cases.js'
import { concurrencyCases } from './concurrency-cases.js'
import { controlledHttpCases } from './controlled-cases.js'
import { headerCases } from './header-cases.js'
import { isolationCases } from './isolation-cases.js'
import { mismatchCases } from './mismatch-cases.js'
import { outcomeCases } from './outcome-cases.js'
import { replayCases } from './replay-cases.js'

const groups = {
  headerCases,
  replayCases,
  mismatchCases,
  comparisonCases,
  outcomeCases,
  concurrencyCases,
  isolationCases,
}

it.each(Object.entries(groups))('%s are among all cases, each with routes that a subject can lack', (_name, cases) => {
  expect(cases.filter((one) => !httpCases.includes(one))).toEqual([])
  expect(cases.filter(({ routes }) => !routes.every((route) => /^(POST|PUT) \/[\w/:-]+$/.test(route)))).toEqual([])
  expect(cases.filter(({ routes }) => routes.length === 0)).toEqual([])
})

it('all groups together are all cases', () => {
  expect(Object.values(groups).reduce((sum, { length }) => sum + length, 0)).toBe(httpCases.length)
})

it('controlled cases say what they need, and cannot be run by an address alone', () => {
  expect(controlledHttpCases.filter(({ needs }) => needs.length === 0)).toEqual([])
  expect(controlledHttpCases.filter((one) => 'run' in one)).toEqual([])
})
