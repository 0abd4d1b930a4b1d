import { expect, it } from 'vitest'
import type { StoredKey } from '../../identity/index.js'
import { FinishedNames } from './finished.js'

const name = (number: number) => String(number) as StoredKey

it('remembers the last ones, and no more than it may', () => {
  const names = new FinishedNames(3)
  for (let number = 0; number < 5; number++) names.add(name(number))
  expect([0, 1, 2, 3, 4].map((number) => names.has(name(number)))).toEqual([false, false, true, true, true])
  names.delete(name(3))
  names.add(name(2))
  expect(names.size).toBe(2)
  for (let number = 5; number < 100; number++) names.add(name(number % 7))
  expect(names.size).toBeLessThanOrEqual(3)
})
