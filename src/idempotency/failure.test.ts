import { expect, expectTypeOf, it } from 'vitest'
import { type Failure, fail, isFailure, OperationFailedError } from './outcome.js'

it('is data with a code, told from results also across copies of the package', () => {
  const failure = fail('declined', { limit: 5 })
  expectTypeOf(failure).toEqualTypeOf<Failure<'declined', { limit: number }>>()
  expect([failure.code, failure.data, isFailure(failure)]).toEqual(['declined', { limit: 5 }, true])
  expect(isFailure({ [Symbol.for('reprise.failure')]: true, code: 'x' })).toBe(true)
  expect([undefined, null, 'x', {}, { code: 'declined' }].some(isFailure)).toBe(false)
})

it.each(['', '1st', 'two words', 'x'.repeat(65), 7 as never])('refuses the code %j', (code) => {
  expect(() => fail(code)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
})

it('becomes an error that says nothing of its data in its message', () => {
  const cause = new Error('bank')
  const error = new OperationFailedError(fail('declined', 'secret'), { replayed: true, cause })
  expect(error).toMatchObject({ code: 'OPERATION_FAILED', replayed: true, cause, failure: { data: 'secret' } })
  expect(JSON.stringify(error)).not.toContain('secret')
  expect(new OperationFailedError(fail('declined'))).toMatchObject({ replayed: false })
})
