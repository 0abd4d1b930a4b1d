import { expect, it } from 'vitest'
import { misplaced, mountedTwice } from './misplaced.js'

it('says what is wrong with a mount, and which option it is about', () => {
  expect(misplaced('Not there.')).toMatchObject({ code: 'OPERATION_INVALID', message: 'Not there.' })
  const { message, details } = mountedTwice()
  expect([message, details]).toEqual([expect.stringContaining('more than once'), { option: 'idempotency' }])
})
