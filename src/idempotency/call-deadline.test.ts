import { expect, it } from 'vitest'
import { withIntent } from '../identity/index.js'
import { manualClock } from '../testing/index.js'
import { callDeadline } from './call-identity.js'

it('is the shortest of what was told, what the window allows, and what is left of the intent in flight', () => {
  const clock = manualClock()
  const nowMs = clock.monotonicMs()
  expect(callDeadline({ deadline: '2s' }, 10_000, 60_000, clock).expiresAtMs - nowMs).toBe(2_000)
  expect(callDeadline({}, 2_000, 1_500, clock).expiresAtMs - nowMs).toBe(1_500)
  expect(callDeadline({ deadline: 2_000 }, 10_000, 5, clock).expiresAtMs - nowMs).toBe(5)
  const deadline = { expiresAtMs: nowMs + 100 }
  expect(withIntent({ deadline }, () => callDeadline({}, 2_000, 500, clock).expiresAtMs) - nowMs).toBe(100)
})
