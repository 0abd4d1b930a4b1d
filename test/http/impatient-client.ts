// A client for tests on real sockets: as any other, but it hardly waits between attempts.

import { type HttpClient, type HttpClientOptions, httpClient } from '../../src/http/client/index.js'
import { constantDelay } from '../../src/retry/index.js'

/** A client that waits a millisecond. */
export const impatientClient = (options: HttpClientOptions = {}): HttpClient =>
  httpClient({ ...options, policy: { backoff: constantDelay(1), ...options.policy } })
