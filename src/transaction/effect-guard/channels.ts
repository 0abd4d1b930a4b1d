// Noticing effects everywhere: Node and undici tell of each request on diagnostics channels. They cannot be stopped
// there, only noticed.

import diagnostics from 'node:diagnostics_channel'
import { openTransaction } from '../open-transaction.js'
import { noticeEffect } from './effect.js'
import { originOfClientRequest, originOfUndici } from './origin.js'

let watching = false
const told = new WeakSet<object>()

/**
 * Subscribes to the channels, once in a process. Costs each request outside of transactions a function call. Node 20
 * tells of a request only when the microtasks are through, so a body is open until then: else one which it made last,
 * and did not wait for, would be told after it.
 */
export function watchEffects(): void {
  if (watching) return
  watching = true
  diagnostics.subscribe('undici:request:create', onUndici)
  // Where both are told, the earlier one (Node 22.12 and later) comes while the caller's code runs.
  diagnostics.subscribe('http.client.request.created', onClientRequest)
  diagnostics.subscribe('http.client.request.start', onClientRequest)
}

function onUndici(message: unknown): void {
  noticeEffect(() => ({ by: 'fetch', origin: originOfUndici(requestOf(message)) }))
}

function onClientRequest(message: unknown): void {
  if (openTransaction() === undefined) return
  const request = requestOf(message)
  if (typeof request !== 'object' || request === null || told.has(request)) return
  told.add(request)
  noticeEffect(() => ({ by: 'http', origin: originOfClientRequest(request) }))
}

// Anybody can publish anything on a channel, and an error thrown here would be an uncaught one.
function requestOf(message: unknown): unknown {
  try {
    return (message as { readonly request?: unknown } | undefined)?.request
  } catch {
    return undefined
  }
}
