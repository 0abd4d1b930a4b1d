// The service: one route, and what it tells of its work.

import { subscribe } from 'node:diagnostics_channel'
import { createServer, type Server } from 'node:http'
import { type TransactionAttemptEvent, transactionAttempt } from 'reprise/telemetry'
import { actionRoute } from './actions.js'
import type { Store } from './store.js'

/** What is told: a request arrived, a transaction was begun for it, one failed and is repeated as a whole. */
export type Serving = 'request' | 'attempt' | 'repeat'

/** The service, not yet listening. */
export function actionService(store: Store, told: (what: Serving) => void): Server {
  const create = actionRoute(store, () => told('attempt'))
  subscribe(transactionAttempt.name, (message) => {
    const { operation, delayMs } = message as TransactionAttemptEvent
    if (operation !== undefined && delayMs !== undefined) told('repeat')
  })
  return createServer((request, response) => {
    if (request.method !== 'POST' || request.url !== '/actions') {
      response.writeHead(404).end()
      return
    }
    told('request')
    void create(request, response)
  })
}
