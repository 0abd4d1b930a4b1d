// Hearing of an abort: one listener on a signal for all who wait for it, so that many waits do not look like a leak.

const waiting = new WeakMap<AbortSignal, Set<() => void>>()

/**
 * Calls `hear` once, when the signal aborts. The function it returns ends that; the last one who leaves takes the listener along.
 * Node warns of more than ten listeners on one signal, and a service may have hundreds of calls under one.
 */
export function whenAborted(signal: AbortSignal, hear: () => void): () => void {
  let all = waiting.get(signal)
  if (all === undefined) {
    all = new Set()
    waiting.set(signal, all)
  }
  const hearers = all
  // Each wait is an entry of its own, also where two share a function.
  const entry = (): void => hear()
  if (hearers.size === 0) signal.addEventListener('abort', tellAll)
  hearers.add(entry)
  return () => {
    if (hearers.delete(entry) && hearers.size === 0) signal.removeEventListener('abort', tellAll)
  }
}

function tellAll(this: AbortSignal): void {
  this.removeEventListener('abort', tellAll)
  const hearers = waiting.get(this)
  waiting.delete(this)
  for (const entry of hearers ?? []) entry()
}
