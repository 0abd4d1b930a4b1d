// A turn of the event loop: the shortest wait after which all promises that could settle by themselves have done so.

// Taken at import, so that fake timers which a test installs later do not stop those who wait for a turn.
const immediately: ((work: () => void) => unknown) | undefined = globalThis.setImmediate

/** Waits for one whole turn of the event loop, by the runtime's own means and not by any clock. */
export function eventLoopTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof immediately === 'function') {
      immediately(resolve)
      return
    }
    // Browsers: a message is the shortest way to a later turn.
    const { port1, port2 } = new MessageChannel()
    const onmessage = (): void => {
      port1.close()
      resolve()
    }
    Object.assign(port1, { onmessage })
    port2.postMessage(undefined)
  })
}

/** Calls `work` once the microtasks at hand are through, and before timers and input: for tidying up that calls in a row can share. */
export function afterMicrotasks(work: () => void): void {
  const host = (globalThis as { readonly process?: { readonly nextTick?: (work: () => void) => void } }).process
  if (typeof host?.nextTick === 'function') host.nextTick(work)
  else queueMicrotask(work)
}
