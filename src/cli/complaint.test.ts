import { describe, expect, it } from 'vitest'
import { RepriseError } from '../kernel/index.js'
import { complaintOf, withoutPasswords } from './complaint.js'
import { UsageError } from './option-table.js'

describe('complaintOf', () => {
  it.each([
    [new UsageError('--url is missing'), '--url is missing', 2],
    [new RepriseError('DURATION_INVALID', 'Not a duration.'), 'Not a duration. [DURATION_INVALID]', 2],
    [new RepriseError('MIGRATION_MISSING', 'No tables.'), 'No tables. [MIGRATION_MISSING]', 1],
    [new Error('connect ECONNREFUSED'), 'connect ECONNREFUSED', 1],
    [new AggregateError([new Error('connect ECONNREFUSED ::1:1'), new Error('b')]), 'connect ECONNREFUSED ::1:1', 1],
    ['thrown text', 'something failed', 1],
  ])('%o', (error, line, exitCode) => {
    expect(complaintOf(error)).toEqual({ line, exitCode })
  })

  it.each([
    [{ because: 'absent' }, 'not there'],
    [{ because: 'finished' }, 'finished already'],
    [{ because: 'in-flight', retryInMs: 1_200 }, 'being worked on; its lease is over in 2 s'],
    [{ because: 'invalid' }, 'not one that can be settled'],
  ])('says why nothing was settled: %j', (details, words) => {
    const { line, exitCode } = complaintOf(new RepriseError('SETTLE_REFUSED', 'No.', { details }))
    expect(line).toBe(`nothing was settled: the record is ${words} [SETTLE_REFUSED]`)
    expect(exitCode).toBe(3)
  })
})

it.each([
  ['postgres://app:s3cret@db.example/app', 'postgres://…@db.example/app'],
  ['at postgres://app:s3@cret@db.example/app, said it', 'at postgres://…@db.example/app, said it'],
  ['postgres://db.example/app?password=s3cret&user=app', 'postgres://db.example/app?password=…&user=app'],
  ['sqlite:data/app.db', 'sqlite:data/app.db'],
])('withoutPasswords: %s', (text, expected) => {
  expect(withoutPasswords(text)).toBe(expected)
})
