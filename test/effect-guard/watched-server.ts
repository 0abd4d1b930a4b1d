// A server that counts, and the events about effects, fresh for every test of a file.

import diagnostics from 'node:diagnostics_channel'
import { afterAll, afterEach, beforeEach } from 'vitest'
import { type CountingServer, countingServer } from './counting-server.js'

/** Starts a server for the tests of a file, and keeps what the channel of effects tells during each of them. */
export async function watchedServer(): Promise<{
  readonly server: CountingServer
  readonly events: readonly unknown[]
}> {
  const server = await countingServer()
  const events: unknown[] = []
  const listen = (event: unknown): void => void events.push(event)
  afterAll(() => server.close())
  beforeEach(() => {
    events.length = 0
    server.arrived.length = 0
    diagnostics.subscribe('reprise.transaction.effect', listen)
  })
  afterEach(() => void diagnostics.unsubscribe('reprise.transaction.effect', listen))
  return { server, events }
}
