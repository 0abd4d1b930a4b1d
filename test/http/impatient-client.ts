// A client for tests on real sockets: as any other, but it hardly waits between attempts.

import { type HttpClient, type HttpClientOptions, httpClient } from '../../src/http/client/index.js'
import { constantDelay } from '../../src/retry/index.js'
import type { ManualClock } from '../../src/testing/index.js'

/** Lets virtual time pass, little by little, until something really happens: no machine is too slow for that. */
export async function passUntil(clock: ManualClock, holds: () => boolean): Promise<void> {
  while (!holds()) {
    await clock.advance(1)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

/** A client that waits a millisecond. */
export const impatientClient = (options: HttpClientOptions = {}): HttpClient =>
  httpClient({ ...options, policy: { backoff: constantDelay(1), ...options.policy } })
