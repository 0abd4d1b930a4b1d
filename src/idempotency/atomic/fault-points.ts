// The places in the runner of atomic operations at which a test can stop, fail or kill the process, beyond those of its
// transactions.

/** Every fault point of the runner, in the order in which a call can reach them. */
export const operationFaultPoints = [
  /** It leads: no duplicate of it runs in this process. */
  'operation.leading',
  /** It has read the record without a transaction, since the key is thought to be finished. */
  'operation.looked',
  /** The transaction is rolled back, and its final failure is not stored yet. */
  'operation.failing',
  /** The outcome is stored, and nobody has heard of it. */
  'operation.stored',
  /** Duplicates have been told, the caller has not. */
  'operation.told',
] as const

/** The name of a fault point of the runner. */
export type OperationFaultPoint = (typeof operationFaultPoints)[number]
