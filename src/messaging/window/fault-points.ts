// The places in a dedupe window at which a test can stop, fail or kill the process.

/** Every fault point of a window with a store, in the order in which a call can reach them. */
export const windowFaultPoints = [
  /** The id is new here and in the store, and the sink was not called yet. */
  'window.checked',
  /** The sink has accepted, and no mark was sent to the store. */
  'window.accepted',
  /** The mark is in the store, and nobody has heard of it. */
  'window.marked',
] as const

/** The name of a fault point of a window. */
export type WindowFaultPoint = (typeof windowFaultPoints)[number]
