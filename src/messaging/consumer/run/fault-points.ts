// The places in a consumer at which a test can stop, fail or kill the process.

import { faultPoint } from '../../../kernel/index.js'

/** Every fault point of a consumer, in the order in which a message can reach them. */
export const consumerFaultPoints = [
  /** Lanes were claimed, and no message of them was begun. */
  'consumer.claimed',
  /** A message from a broker is new, and its handler was not called yet. */
  'consumer.arrived',
  /** The handler is through, and its transaction open. */
  'consumer.handled',
  /** All is committed, and nobody has heard of it. */
  'consumer.committed',
  /** The handler has failed and was rolled back, and nothing was written about that yet. */
  'consumer.failed',
  /** What follows from a failure is written, and the message is not acknowledged. */
  'consumer.kept',
  /** The message is acknowledged. */
  'consumer.acked',
] as const

/** The name of a fault point of a consumer. */
export type ConsumerFaultPoint = (typeof consumerFaultPoints)[number]

/** Reaches a fault point. */
export function reach(point: ConsumerFaultPoint): PromiseLike<void> | undefined {
  return faultPoint(point)
}
