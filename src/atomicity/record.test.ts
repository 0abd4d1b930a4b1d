import { expect, it } from 'vitest'
import { fingerprint } from '../identity/index.js'
import { isForgotten, isSameContent } from './record.js'
import { changedRecord, draftedRecord } from './record-writes.js'

const noFence = (): never => expect.unreachable('an atomic claim has no fence')
const claim = draftedRecord({ mode: 'atomic', token: 't' }, 1, noFence)

it('a finished record is forgotten when its window is over, and one that is claimed never is', () => {
  const done = changedRecord(claim, { state: 'succeeded', remembered: 10 }, 5, noFence)
  expect([14, 15].map((nowMs) => isForgotten(done, nowMs))).toEqual([false, true])
  expect(isForgotten({ ...claim, expiresAtMs: 1 }, 99)).toBe(false)
})

it('content is the same by the rule of the fingerprint that is stored', () => {
  const content = { value: { amount: 1, at: 2 } }
  const bound = { content, fingerprint: fingerprint(content) }
  const stored = fingerprint({ value: { amount: 1, at: 3 } }, { only: ['/amount'] })
  expect(isSameContent(bound, { format: 1, fingerprint: stored })).toBe(true)
  expect(isSameContent(bound, { format: 1, fingerprint: fingerprint({ value: 1 }) })).toBe(false)
})
