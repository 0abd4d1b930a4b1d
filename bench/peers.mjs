// The retry libraries that run on every Node that Reprise supports. `newest/peers.mjs` is the same list for newer ones.

export { default as asyncRetry } from 'async-retry'
export * as cockatiel from 'cockatiel'
export * as effect from 'effect'
export { backOff } from 'exponential-backoff'
export { default as CircuitBreaker } from 'opossum'
export { default as pRetry } from 'p-retry'

/** Where they are installed. */
export const folder = new URL('./', import.meta.url)
