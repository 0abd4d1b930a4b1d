// What happens to a key, live: Reprise publishes its decisions on diagnostics channels, and this forwards them to the
// user who made the requests.

import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe } from 'node:diagnostics_channel'
import type { ServerResponse } from 'node:http'
import { ownerOf } from './ledger.js'

/** The request that is being served where a decision is told. */
interface Served {
  readonly number: number
  readonly owner: string
  /** What the Drill field said. Words in it that ask for nothing are the caller's own: it sees them again. */
  readonly drill: string | undefined
}

/** The channels, and what is told of their messages. No message holds a key. */
const channels: Readonly<Record<string, readonly string[]>> = {
  'reprise.operation.claimed': ['attempt'],
  'reprise.operation.executed': [],
  'reprise.operation.failed': [],
  'reprise.operation.replayed': ['from'],
  'reprise.operation.refused': ['code'],
  'reprise.http.answered': ['how', 'status', 'problem'],
}

const mostWatchers = 100
const mostUnreadBytes = 1_000_000
const heartbeatMs = 15_000

/** Hands decisions on to those who watch. */
export class Live {
  readonly #serving = new AsyncLocalStorage<Served>()
  readonly #watchers = new Map<ServerResponse, string>()
  #requests = 0

  constructor() {
    for (const [name, members] of Object.entries(channels)) {
      subscribe(name, (message) => {
        const given = message as Record<string, unknown>
        this.tell(name, Object.fromEntries(members.map((member) => [member, given[member]])))
      })
    }
  }

  /** Serves a request; what is decided meanwhile is told to its principal. */
  serve<Result>(principal: string, drill: string | undefined, work: () => Result): Result {
    this.#requests += 1
    return this.#serving.run({ number: this.#requests, owner: ownerOf(principal), drill }, work)
  }

  /** Tells something about the request that is being served. */
  tell(what: string, more: object = {}): void {
    const served = this.#serving.getStore()
    if (served === undefined) return
    const { number, owner, drill } = served
    this.tellOwner(owner, { request: number, drill, what, ...more })
  }

  /** Tells something to one whose payments it is about. */
  tellOwner(owner: string, event: object): void {
    const line = `data: ${JSON.stringify(event)}\n\n`
    for (const [watcher, watching] of this.#watchers) {
      if (watching !== owner) continue
      if (watcher.writableLength > mostUnreadBytes) watcher.destroy()
      else watcher.write(line)
    }
  }

  /** Answers with a stream of what is told from now on. */
  watch(principal: string, response: ServerResponse): void {
    if (this.#watchers.size >= mostWatchers) {
      response.writeHead(503, { 'retry-after': '5' }).end()
      return
    }
    // The end of the connection is the end of the stream. One of chunks would be broken off by the end of the process,
    // and a browser throws away what it has not read of an answer that broke off: the last words before the end.
    response.removeHeader('transfer-encoding')
    const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-store', connection: 'close' }
    response.writeHead(200, headers)
    response.write(': watching\n\n')
    this.#watchers.set(response, ownerOf(principal))
    const heartbeat = setInterval(() => response.write(': still here\n\n'), heartbeatMs)
    response.on('close', () => {
      clearInterval(heartbeat)
      this.#watchers.delete(response)
    })
  }

  /** Ends all streams, so that the service can drain. */
  end(): void {
    for (const watcher of this.#watchers.keys()) watcher.end()
  }
}
