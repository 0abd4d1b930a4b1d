// How long a key is remembered, and what becomes of a repeat that arrives later.

import { isRepriseError, keyWindow } from 'reprise'
import { isRemembered, keyAgeMs, parseKey } from 'reprise/identity'
import { formatDuration } from 'reprise/kernel'

try {
  keyWindow({ window: '24h', retryHorizon: '3d' })
} catch (error) {
  if (isRepriseError(error)) console.log(`${error.code}: ${error.message}`)
}

// Three days, because somebody may redrive a dead letter after the weekend.
const window = keyWindow({ window: '72h', retryHorizon: '3d' })
const completedAtMs = Date.parse('2026-11-13T17:00:00Z')
for (const arrival of ['2026-11-16T09:00:00Z', '2026-11-16T18:00:00Z']) {
  const answer = isRemembered(window, completedAtMs, Date.parse(arrival)) ? 'replayed' : 'forgotten'
  console.log(`a repeat at ${arrival} is ${answer}`)
}

// A UUIDv7 key carries the time it was minted, so a repeat from beyond the window can be told from a new intent.
const key = parseKey('01a1dea6-4100-7000-8000-000000000000')
const ageMs = keyAgeMs(key, Date.parse('2026-11-15T12:00:00Z'))
if (ageMs !== undefined) console.log(`this key was minted ${formatDuration(ageMs)} ago`)
