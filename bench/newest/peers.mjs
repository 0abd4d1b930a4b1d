// The newest retry libraries, which need Node 22. `../peers.mjs` is the same list for Node 20.

export { default as asyncRetry } from 'async-retry'
export * as cockatiel from 'cockatiel'
export * as effect from 'effect'
export { backOff } from 'exponential-backoff'
export { default as CircuitBreaker } from 'opossum'
export { default as pRetry } from 'p-retry'

/** Where they are installed. */
export const folder = new URL('./', import.meta.url)
