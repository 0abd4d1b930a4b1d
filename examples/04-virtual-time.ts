// Waiting ten days takes no time in a test: the clock is an argument, and this one is moved by hand.

import { deadlineAfter, remainingMs, sleep } from 'reprise/kernel'
import { manualClock } from 'reprise/testing'

const clock = manualClock()
const deadline = deadlineAfter('8d', clock)

const long = sleep('10d', { clock }).then(() => console.log('ten days have passed'))
const giveUp = new AbortController()
const aborted = sleep('9d', { clock, signal: giveUp.signal }).catch((reason) => console.log('gave up:', reason))

await clock.advance('7d')
console.log(`left until the deadline: ${remainingMs(deadline, clock) / 86_400_000} day`)
giveUp.abort('nobody waits any more')
await aborted
await clock.advance('3d')
await long
console.log(`timers left: ${clock.pendingTimers}`)
