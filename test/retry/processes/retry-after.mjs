// Reads dates of Retry-After in whatever time zone this process was started in. Prints how far the zone is from UTC,
// how far Date.parse misses a date without one, and what was read.

import { httpVerdict } from 'reprise/retry'

const nowMs = Date.UTC(2026, 10, 15, 12, 0, 0)
const dates = process.argv.slice(2)
const read = dates.map((date) => {
  const header = (/** @type {string} */ name) => (name === 'retry-after' ? date : null)
  return httpVerdict({ status: 503, header, nowMs })?.retryAfterMs
})
const missedMs = dates.map((date) => Date.parse(date) - nowMs - 60_000)
console.log(JSON.stringify({ offsetMinutes: new Date(nowMs).getTimezoneOffset(), missedMs, read }))
