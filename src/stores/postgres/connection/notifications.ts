// Wakes readers in other processes: NOTIFY after commits, as a statement of its own, and LISTEN on a connection that is
// kept. What is not sent or not heard costs time alone: readers ask the store now and then.
//
// NOTIFY inside of the transactions would have them commit one after the other, since its queue has one lock for all.

import {
  type Clock,
  detached,
  inTime,
  isRepriseError,
  type Random,
  RepriseError,
  sha256,
  sleep,
  uuidv4,
  waitFor,
  warnOnce,
} from '../../../kernel/index.js'
import { equalJitter } from '../../../retry/index.js'
import { messagesListening, messagesUntold } from '../../../telemetry/index.js'
import { quoteName } from '../../sql/index.js'
import type { PostgresPoolClient } from '../options.js'
import type { Connections } from './connections.js'

/** Commits of so many ms share one NOTIFY. */
const gatherMs = 10
/** How long a connection is waited for, and a statement. */
const limitMs = 1_000
/** How long a test of the way from NOTIFY to us may take. */
const testLimitMs = 5_000
/** How often the way is tested, so that a connection that died without a word is found. */
const testEveryMs = 30_000
/** A pooler does not go away by itself. */
const deafForMs = 60_000
const backoff = equalJitter({ baseMs: 250, capMs: 30_000 })

/** What notifications need. */
export interface NotificationParts {
  /** The name of the store. */
  readonly domain: string
  readonly connections: Connections
  /** Where the tables are: those who share them share a channel. */
  readonly schema: { readonly schema: string; readonly prefix: string }
  readonly clock: Clock
  readonly random: Random
}

/** A client of pg, as far as it hears. */
interface HearingClient {
  on(event: 'notification', listener: (heard: { readonly payload?: string }) => void): unknown
  on(event: 'end' | 'error', listener: (error?: Error) => void): unknown
}

/** Tells other processes of messages, and hears of theirs. */
export class Notifications {
  /** What is listened to. */
  readonly channel: string
  readonly #parts: NotificationParts
  // Who sends: what we said ourselves wakes nobody here, who was woken before.
  readonly #own: string
  readonly #listeners = new Set<() => void>()
  readonly #tests = new Map<string, () => void>()
  #stop: AbortController | undefined
  #isGathering = false
  #dropped = 0

  constructor(parts: NotificationParts) {
    const { connections, schema, random } = parts
    if (connections.most < 2) {
      const message = 'The option notify needs a pool of two connections at least: one of them listens.'
      throw new RepriseError('ARGUMENT_INVALID', message, { details: { option: 'notify' } })
    }
    this.#parts = parts
    this.channel = `reprise_${sha256(`${schema.schema}.${schema.prefix}`)
      .slice(-43)
      .replace(/[^A-Za-z0-9]/g, '_')}`
    this.#own = uuidv4(random)
  }

  /** Messages were committed here. Others are told soon, once for many. */
  readonly committed = (): void => {
    if (this.#isGathering) return
    this.#isGathering = true
    const send = (): void => {
      this.#isGathering = false
      void detached(() => this.#notify(this.#own)).catch((error: unknown) => {
        this.#dropped += 1
        const { domain } = this.#parts
        if (messagesUntold.hasSubscribers) messagesUntold.publish({ domain, dropped: this.#dropped, error })
      })
    }
    this.#parts.clock.setTimer(gatherMs, send, { keepAlive: false })
  }

  /** Calls `listener` when another process has committed messages. A connection is kept for it until all have ended. */
  listen(listener: () => void): () => void {
    const listening = (): void => listener()
    this.#listeners.add(listening)
    if (this.#stop === undefined) {
      const stop = new AbortController()
      this.#stop = stop
      void detached(() => this.#keepListening(stop.signal))
    }
    return () => {
      this.#listeners.delete(listening)
      if (this.#listeners.size === 0) this.close()
    }
  }

  /** Listens no more. */
  close(): void {
    this.#stop?.abort()
    this.#stop = undefined
  }

  async #notify(payload: string): Promise<void> {
    const { connections, clock } = this.#parts
    const client = await connections.take({ waitMs: limitMs })
    try {
      const sent = client.query('SELECT pg_notify($1, $2)', [this.channel, payload])
      await inTime({ clock, limitMs }, sent)
    } catch (error) {
      connections.leave(client)
      throw error
    }
    client.release()
  }

  async #keepListening(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#parts
    for (let failures = 1; !signal.aborted; failures += 1) {
      const session = { heard: false }
      const error = await this.#session(session, signal).catch((failed: unknown) => failed)
      if (signal.aborted || (isRepriseError(error) && error.code === 'STORE_CLOSED')) return
      if (session.heard) failures = 1
      const isDeaf = error === deaf && !session.heard
      this.#tell(isDeaf ? 'deaf' : 'lost', error)
      const forMs = isDeaf ? deafForMs : Math.ceil(backoff.delayMs(failures, 0, random))
      await sleep(forMs, { clock, signal, keepAlive: false }).catch(() => undefined)
    }
  }

  // One connection, as long as it hears. Rejected when it does not any more.
  async #session(session: { heard: boolean }, signal: AbortSignal): Promise<void> {
    const { connections, clock } = this.#parts
    const client = await connections.take({ waitMs: limitMs, signal })
    try {
      const gone = this.#hear(client)
      const within = { clock, signal }
      await inTime({ ...within, limitMs }, Promise.race([gone, client.query(`LISTEN ${quoteName(this.channel)}`)]))
      for (;;) {
        const test = this.#test(signal)
        // Later on only silence counts: that a busy pool has no connection for a word says nothing of this one.
        await Promise.race([gone, session.heard ? test.catch(unlessDeaf) : test])
        if (!session.heard) this.#tell('listening', undefined)
        session.heard = true
        await inTime(within, Promise.race([gone, sleep(testEveryMs, { ...within, keepAlive: false })]))
      }
    } finally {
      // Closed, since another one who gets it would be told what is meant for us.
      client.release(true)
    }
  }

  // Rejected when the connection has ended.
  #hear(client: PostgresPoolClient): Promise<never> {
    const hearing = client as unknown as HearingClient
    hearing.on('notification', ({ payload = '' }) => {
      this.#tests.get(payload)?.()
      if (payload !== this.#own && !payload.startsWith(testWord)) this.#wakeAll()
    })
    const gone = new Promise<never>((_, reject) => {
      const end = (error?: Error): void => reject(error ?? new Error('The connection has ended.'))
      hearing.on('error', end)
      hearing.on('end', () => end())
    })
    gone.catch(() => undefined)
    return gone
  }

  // By another connection: behind a pooler that changes the server's, the word comes to whoever has it then.
  async #test(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#parts
    const word = `${testWord}${uuidv4(random)}`
    try {
      await waitFor<void>({ clock, signal, limitMs: testLimitMs, expired: () => deaf }, (resolve, reject) => {
        this.#tests.set(word, () => resolve())
        this.#notify(word).catch(reject)
        return () => this.#tests.delete(word)
      })
    } finally {
      this.#tests.delete(word)
    }
  }

  #tell(is: 'listening' | 'lost' | 'deaf', error: unknown): void {
    const { domain } = this.#parts
    if (messagesListening.hasSubscribers) messagesListening.publish({ domain, is, error })
    // What was emitted before may have been missed.
    if (is === 'listening') this.#wakeAll()
    if (is === 'deaf') warnOnce('NOTIFY_UNHEARD', unheard)
  }

  #wakeAll(): void {
    for (const listener of this.#listeners) listener()
  }
}

const testWord = 'test '
const unheard =
  'A NOTIFY of our own was not heard: the pool goes through a pooler of transactions. Readers find messages of other processes by asking, as often as their option poll says.'
const deaf = new Error(unheard)

function unlessDeaf(error: unknown): void {
  if (error === deaf) throw error
}
