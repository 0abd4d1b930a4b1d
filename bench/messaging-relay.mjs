// A relay, which keeps messages of a key in order, against loops and queues that keep no order.

import assert from 'node:assert/strict'
import { queuesOn } from './messaging-queues.mjs'
import { batch, effort, outboxByHand, outboxOf, publishing, shortEffort } from './messaging-work.mjs'

const ours = 'relay, in order per key'
const byHand = 'loop by hand: SKIP LOCKED, publish, DELETE; no order'

/**
 * @param {import('pg').Pool} pool
 * @param {string} url
 * @param {string} place
 */
export async function* relayCases(pool, url, place) {
  const outbox = await outboxOf(pool, 'relay_')
  const hand = await outboxByHand(pool)
  for (const one of [outbox, hand]) {
    const before = one.sent.messages
    await one.fill({ keys: 3, perKey: 4 })
    await one.publish(12)
    assert.equal(one.sent.messages - before, 12)
  }
  const queues = await queuesOn(pool, url)
  const shared = { rates: true, effort, shortEffort }
  try {
    yield {
      ...shared,
      name: `relay, ten messages a key, batches of ${batch}, ${place}`,
      subjects: [publishing(ours, outbox, 10), publishing(byHand, hand, 10), ...queues.subjects],
      targets: [{ against: byHand, limit: 0.8 }, ...queues.targets],
      notes: queues.notes,
    }
    yield {
      ...shared,
      name: `relay, one message a key, batches of ${batch}, ${place}`,
      subjects: [publishing(ours, outbox, 1), publishing(byHand, hand, 1)],
      targets: [{ against: byHand, limit: 0.8 }],
    }
    yield {
      ...shared,
      name: `relay, one hot key, batches of ${batch}, ${place}, for information`,
      subjects: [
        publishing(ours, outbox, Number.POSITIVE_INFINITY),
        publishing(byHand, hand, Number.POSITIVE_INFINITY),
      ],
      targets: [],
    }
    yield {
      ...shared,
      effort: { ...effort, rounds: 5 },
      name: `relay, 64 kB of data, ten messages a key, ${place}, for information`,
      subjects: [publishing(ours, outbox, 10, 65_536), publishing(byHand, hand, 10, 65_536)],
      targets: [],
    }
  } finally {
    await queues.dispose()
  }
}
