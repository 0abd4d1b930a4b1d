// The HTTP client: fetch, with repeats where they are safe.

export type { Answer, Reader } from './answer.js'
export { type HttpClient, type HttpClientOptions, httpClient } from './client.js'
export type { ConditionalUpdate, ConditionalUpdateOptions } from './conditional-update.js'
export type { Origins } from './origins.js'
export type { CallInit, CallOptions } from './request.js'
