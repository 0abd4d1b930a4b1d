import { expect, it } from 'vitest'
import { fail, OperationFailedError } from '../../../idempotency/index.js'
import { type ErrorCode, errorCodes, RepriseError } from '../../../kernel/index.js'
import { problemKinds } from '../problems.js'
import { errorProblem, type FailedRequest, isTransientAbort } from './error-problem.js'
import { thrownBy } from './handler.js'

const before: FailedRequest = { keyed: true, keyField: 'idempotency-key', settlesItself: true }
const of = (code: ErrorCode, details = {}) => new RepriseError(code, 'x', { details })

it.each([
  ['OPERATION_IN_FLIGHT', before, { name: 'in-flight' }],
  ['QUEUE_FULL', before, { name: 'in-flight' }],
  ['OPERATION_MISMATCH', before, { name: 'key-reused' }],
  ['BODY_TOO_LARGE', before, { name: 'body-too-large' }],
  ['BODY_CUT', before, { name: 'request-invalid', retryable: true }],
  ['KEY_TOO_OLD', before, { name: 'key-too-old' }],
  ['SCOPE_INVALID', before, { name: 'unauthenticated' }],
  ['FINGERPRINT_INVALID', before, { name: 'record-unusable' }],
  ['RECORD_FORMAT_NEWER', before, { name: 'record-unusable', status: 503, retryable: true }],
  ['OUTCOME_TOO_LARGE', before, { name: 'answer-not-kept' }],
  ['DEADLINE_EXCEEDED', before, { name: 'deadline-exceeded' }],
  ['POOL_EXHAUSTED', before, { name: 'store-unavailable' }],
  ['MIGRATION_MISSING', before, { name: 'store-not-migrated' }],
  ['OPERATION_UNKNOWN', before, { name: 'outcome-unknown', retryable: true }],
  ['UNKNOWN_OUTCOME', before, { name: 'outcome-unknown', retryable: true, status: 500 }],
  ['UNKNOWN_OUTCOME', { ...before, keyed: false }, { name: 'outcome-unknown', retryable: false, status: 500 }],
] as const)('makes of %s %o', (code, request, problem) => {
  expect(errorProblem(of(code), request)).toMatchObject(problem)
})

it('says 500 to the one whose own run may have had the effect, 409 to others', () => {
  const held = { ...before, settlesItself: false }
  for (const code of ['OPERATION_UNKNOWN', 'LEASE_LOST'] as const) {
    const problem = { name: 'outcome-unknown', retryable: false }
    expect(errorProblem(of(code), held)).toEqual(problem)
    expect(errorProblem(of(code, { ran: true }), held)).toEqual({ ...problem, status: 500 })
  }
})

it('says 503 where nobody can tell whether it is this key that somebody is at work on', () => {
  const flight = (certain: boolean) => new RepriseError('OPERATION_IN_FLIGHT', 'x', { details: { certain } })
  expect(errorProblem(flight(false), before)).toEqual({ name: 'store-unavailable' })
  expect(errorProblem(flight(true), before)).toEqual({ name: 'in-flight' })
})

it('says 503 where the queue of the store is full, 409 where that of the duplicates is', () => {
  const full = (details: Record<string, number>) => new RepriseError('QUEUE_FULL', 'x', { details })
  expect(errorProblem(full({ places: 1, queue: 1_000 }), before)).toEqual({ name: 'store-unavailable' })
  expect(errorProblem(full({ waiters: 10 }), before)).toEqual({ name: 'in-flight' })
})

it('says what is wrong with a key, and calls its field by its name', () => {
  const long = new RepriseError('KEY_TOO_LONG', 'The key has 300 characters; at most 255 are allowed.')
  const detail = 'The key has 300 characters; at most 255 are allowed. Nothing was carried out.'
  expect(errorProblem(long, before)).toEqual({ name: 'key-invalid', detail })
  const { detail: usual } = problemKinds['key-missing']
  expect(errorProblem(of('KEY_MISSING'), before)).toEqual({ name: 'key-missing', detail: usual })
  const missing = errorProblem(of('KEY_MISSING'), { ...before, keyField: 'x-intent' })
  expect(missing?.detail).toMatch(/^This route needs the x-intent field that names/)
  const empty = new RepriseError('KEY_EMPTY', 'The Idempotency-Key field is empty.')
  expect(errorProblem(empty, { ...before, keyField: 'x-intent' })?.detail).toMatch(/^The x-intent field is empty\./)
})

it('says nothing to a caller without a key of repeating with the same key', () => {
  const refusal = errorProblem(of('UNKNOWN_OUTCOME'), { ...before, keyed: false })
  expect(refusal?.detail).not.toContain('same key')
})

it('leaves what is no refusal of the layer to the framework: mistakes, and what the handler threw', () => {
  for (const code of [
    'ARGUMENT_INVALID',
    'TRANSACTION_NESTED',
    'OPERATION_REENTERED',
    'BODY_CONSUMED',
    'SQLITE_DRIVER_MISSING',
  ] as const) {
    expect(errorProblem(of(code), before)).toBeUndefined()
  }
  for (const own of [of('OPERATION_MISMATCH'), new Error('x'), 'text', new OperationFailedError(fail('mine'))]) {
    expect(errorProblem(thrownBy('handler', own), before)).toBeUndefined()
  }
  const late = thrownBy('handler', of('DEADLINE_EXCEEDED'))
  expect(errorProblem(late, before)).toEqual({ name: 'deadline-exceeded' })
})

it('takes any other error before the handler was called for one of the store', () => {
  for (const error of [
    new Error('timeout exceeded when trying to connect'),
    Object.assign(new Error('x'), { code: 'ECONNREFUSED' }),
    'text',
    null,
  ]) {
    expect(errorProblem(error, before)).toEqual({ name: 'store-unavailable' })
    expect(isTransientAbort(error)).toBe(false)
  }
})

it('has a problem, or none, for every code, and never another', () => {
  for (const code of Object.keys(errorCodes) as ErrorCode[]) {
    const name = errorProblem(of(code), before)?.name
    if (name !== undefined) expect(Object.keys(problemKinds)).toContain(name)
  }
})
