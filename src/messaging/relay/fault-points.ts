// The places in a relay at which a test can stop, fail or kill the process.

import { faultPoint } from '../../kernel/index.js'

/** Every fault point of a relay, in the order in which a batch reaches them. */
export const relayFaultPoints = [
  /** Lanes were claimed, and no message of them was published. */
  'relay.claimed',
  /** The broker has answered, and the store was not told. */
  'relay.published',
  /** The store was told. */
  'relay.marked',
] as const

/** The name of a fault point of a relay. */
export type RelayFaultPoint = (typeof relayFaultPoints)[number]

/** Reaches a fault point; undefined, unless a test armed them. */
export const reach: (point: RelayFaultPoint) => PromiseLike<void> | undefined = faultPoint
