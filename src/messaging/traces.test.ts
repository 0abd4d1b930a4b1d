import { expect, it } from 'vitest'
import { type TraceFacts, traceOf } from './traces.js'

const outbox: TraceFacts = {
  reader: 'r',
  kind: 'relay',
  reads: 'outbox',
  handledAtMs: undefined,
  lane: undefined,
  isKept: false,
}
const inbox: TraceFacts = { ...outbox, kind: 'consumer', reads: 'inbox' }
const lane = (epoch: number, number: number, isParked = false) => ({ done: { epoch, number }, isParked })

it.each<[string | undefined, string, TraceFacts]>([
  ['untold', 'a reader that knows nothing of the key', outbox],
  ['waiting', 'one that has done nothing of the key', { ...outbox, lane: { done: undefined, isParked: false } }],
  ['waiting', 'one that is just before it', { ...outbox, lane: lane(2, 6) }],
  ['waiting', 'one that is in the epoch before', { ...outbox, lane: lane(1, 99) }],
  ['done', 'one that has done it last', { ...outbox, lane: lane(2, 7) }],
  ['done', 'one that is in the next epoch', { ...outbox, lane: lane(3, 1) }],
  ['parked', 'one that is parked before it', { ...outbox, lane: lane(2, 6, true) }],
  ['done', 'one that is parked behind it', { ...outbox, lane: lane(2, 8, true) }],
  [undefined, 'a consumer of a broker at which it did not arrive', { ...inbox, lane: lane(2, 9) }],
  ['waiting', 'one in whose inbox it is', { ...inbox, isKept: true }],
  ['parked', 'one in whose inbox it is behind a dead letter', { ...inbox, isKept: true, lane: lane(0, 0, true) }],
  ['done', 'one that has processed it', { ...inbox, handledAtMs: 5 }],
])('%s: %s', (state, _who, facts) => {
  expect(traceOf(facts, { epoch: 2, number: 7 })?.state).toBe(state)
})
