// Fault points: named places in the runners at which a test can stop, fail or kill the process. They do nothing in
// production.

/** What to do at a fault point: wait, throw, or end the process. */
export type FaultAction = (point: string) => void | PromiseLike<void>

let action: FaultAction | undefined

/**
 * A named place at which a test may act. Undefined, at the cost of one comparison, unless somebody armed the fault
 * points: `const fault = faultPoint('transaction.before-commit'); if (fault) await fault`.
 */
export function faultPoint(name: string): PromiseLike<void> | undefined {
  return action === undefined ? undefined : act(action, name)
}

// Also an action that throws at once reaches the caller where it awaits, and nowhere else.
async function act(chosen: FaultAction, name: string): Promise<void> {
  await chosen(name)
}

/** Arms all fault points of this process with one action; the function it returns disarms them. For tests. */
export function armFaultPoints(chosen: FaultAction): () => void {
  action = chosen
  return () => {
    if (action === chosen) action = undefined
  }
}
