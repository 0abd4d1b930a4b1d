// The broker of the run: a server on a loopback port that takes messages, logs each of them, and delivers those of a
// key one at a time and in order. It lives as long as the run; its connections do not.

import { createServer, type Server, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { isReadable, readEvent } from '../../../src/messaging/index.js'
import { drawMs, type EngineFault } from '../engines/engine.js'
import type { MessageData } from './definitions.js'

/** A message that came over the wire, once for each time it did. */
export interface OnTheWire {
  readonly id: string
  readonly key: string
  readonly epoch: number
  readonly number: number
  readonly data: MessageData
}

/** What is said to the broker, a line of JSON each. */
export type ToBroker =
  | { readonly publish: number; readonly texts: readonly string[] }
  | { readonly subscribe: number }
  | { readonly paused: boolean }
  | { readonly ack: number }
  | { readonly again: number }
  | { readonly extend: number }

/** What becomes of a message that is published. `behind`: one of its key before it in the call was refused. */
export type TakenAs = 'taken' | 'refused' | 'behind'

/** What the broker says, a line of JSON each. */
export type FromBroker =
  /** One answer for each message of a call. */
  | { readonly published: number; readonly answers: readonly TakenAs[] }
  | { readonly deliver: number; readonly text: string; readonly count: number }

interface Entry {
  readonly text: string
  readonly key: string
  count: number
}

interface Held {
  readonly entry: Entry
  readonly by: Subscriber
  timer: ReturnType<typeof setTimeout>
}

interface Subscriber {
  readonly socket: Socket
  inFlight: number
  paused: boolean
  held: number
}

/** The next call of `publish` is cut off, before its messages are taken or before they are answered for. */
interface Trap {
  readonly isTaken: boolean
  readonly sprung: () => void
}

const trapMs = 1_500

/** The broker, as the run sees it. */
export class TortureBroker {
  /** Whether the faults are over: it takes what it refused before, and waits longer for answers. */
  isMended = false
  /** How many messages came that had come before. */
  duplicates = 0
  readonly #visibleMs: number
  readonly #queues = new Map<string, Entry[]>()
  /** Keys whose first message can be delivered, in the order in which that came to be. */
  readonly #ready = new Set<string>()
  readonly #held = new Map<number, Held>()
  readonly #subscribers = new Set<Subscriber>()
  readonly #sockets = new Set<Socket>()
  readonly #seen = new Set<string>()
  #log: OnTheWire[] = []
  #trap: Trap | undefined
  #tags = 0
  #server: Server | undefined
  #port = 0

  /** @param visibleMs How long a delivery may go without an answer before it comes again. */
  constructor(visibleMs: number) {
    this.#visibleMs = visibleMs
  }

  get port(): number {
    return this.#port
  }

  /** How many different messages came. */
  get distinct(): number {
    return this.#seen.size
  }

  /** Whether all that came was delivered and acknowledged. */
  get isIdle(): boolean {
    return this.#queues.size === 0
  }

  /** What came since this was asked last, in order. */
  taken(): readonly OnTheWire[] {
    const log = this.#log
    this.#log = []
    return log
  }

  async listen(): Promise<void> {
    const server = createServer((socket) => this.#connected(socket))
    this.#server = server
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(this.#port, '127.0.0.1', resolve)
    })
    this.#port = (server.address() as { readonly port: number }).port
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server?.close(resolve))
    for (const socket of this.#sockets) socket.destroy()
    await closed
    for (const { timer } of this.#held.values()) clearTimeout(timer)
  }

  /** What can happen to it. Messages that it has taken stay. */
  get faults(): readonly EngineFault[] {
    return [
      {
        kind: 'cut-broker',
        weight: 3,
        strike: async (random) => {
          const sockets = [...this.#sockets]
          sockets[Math.floor(random.next() * sockets.length)]?.destroy()
          return sockets.length > 0
        },
      },
      {
        kind: 'cut-publish',
        weight: 5,
        strike: (random) =>
          new Promise((resolve) => {
            const trap: Trap = { isTaken: random.next() < 0.5, sprung: () => resolve(true) }
            this.#trap = trap
            setTimeout(() => {
              if (this.#trap === trap) this.#trap = undefined
              resolve(false)
            }, trapMs)
          }),
      },
      {
        kind: 'restart-broker',
        alone: true,
        weight: 1,
        strike: async (random) => {
          await this.close()
          await new Promise((resolve) => setTimeout(resolve, drawMs(random, 50, 600)))
          await this.listen()
          return true
        },
      },
    ]
  }

  #connected(socket: Socket): void {
    this.#sockets.add(socket)
    const subscriber: Subscriber = { socket, inFlight: 0, paused: false, held: 0 }
    this.#subscribers.add(subscriber)
    socket.on('error', () => undefined)
    socket.on('close', () => {
      this.#sockets.delete(socket)
      this.#subscribers.delete(subscriber)
      for (const [tag, { by }] of this.#held) if (by === subscriber) this.#giveBack(tag)
    })
    const lines = createInterface({ input: socket })
    lines.on('error', () => undefined)
    lines.on('line', (line) => {
      // A line that was cut off is no line.
      if (!socket.destroyed) this.#heard(subscriber, JSON.parse(line) as ToBroker)
    })
  }

  #heard(from: Subscriber, said: ToBroker): void {
    if ('publish' in said) {
      const trap = this.#trap
      this.#trap = undefined
      const refused = new Set<string>()
      const answers = trap?.isTaken === false ? [] : said.texts.map((text) => this.#take(text, refused))
      trap?.sprung()
      if (trap !== undefined) from.socket.destroy()
      else this.#say(from, { published: said.publish, answers })
    } else if ('subscribe' in said) from.inFlight = said.subscribe
    else if ('paused' in said) from.paused = said.paused
    else if ('ack' in said) this.#ack(said.ack, from)
    else if ('again' in said) {
      if (this.#held.get(said.again)?.by === from) this.#giveBack(said.again)
    } else this.#extend(said.extend, from)
    this.#deliver()
  }

  #take(text: string, refused: Set<string>): TakenAs {
    const message = readEvent(text)
    if (!isReadable(message)) throw new Error(`A relay has published what is no event: ${text}`)
    const { id, key, place } = message
    const data = message.data as MessageData
    if (refused.has(key)) return 'behind'
    if (data.way === 'refused' && !this.isMended) {
      refused.add(key)
      return 'refused'
    }
    if (this.#seen.has(id)) this.duplicates += 1
    this.#seen.add(id)
    this.#log.push({ id, key, epoch: place?.epoch ?? 0, number: place?.number ?? 0, data })
    const queue = this.#queues.get(key)
    const entry = { text, key, count: 0 }
    if (queue !== undefined) queue.push(entry)
    else {
      this.#queues.set(key, [entry])
      this.#ready.add(key)
    }
    return 'taken'
  }

  // A zombie's answer finds its delivery gone.
  #ack(tag: number, from: Subscriber): void {
    const held = this.#held.get(tag)
    if (held?.by !== from) return
    const { key } = this.#letGo(tag, held)
    const queue = this.#queues.get(key) as Entry[]
    queue.shift()
    if (queue.length === 0) this.#queues.delete(key)
    else this.#ready.add(key)
  }

  #giveBack(tag: number): void {
    const held = this.#held.get(tag)
    if (held !== undefined) this.#ready.add(this.#letGo(tag, held).key)
  }

  #letGo(tag: number, { entry, by, timer }: Held): Entry {
    clearTimeout(timer)
    this.#held.delete(tag)
    by.held -= 1
    return entry
  }

  #extend(tag: number, from: Subscriber): void {
    const held = this.#held.get(tag)
    if (held?.by !== from) return
    clearTimeout(held.timer)
    held.timer = this.#expiry(tag)
  }

  #expiry(tag: number): ReturnType<typeof setTimeout> {
    return setTimeout(
      () => {
        this.#giveBack(tag)
        this.#deliver()
      },
      this.#visibleMs * (this.isMended ? 20 : 1),
    )
  }

  #deliver(): void {
    for (const key of this.#ready) {
      const by = this.#nextSubscriber()
      if (by === undefined) return
      const entry = this.#queues.get(key)?.[0] as Entry
      this.#ready.delete(key)
      this.#tags += 1
      entry.count += 1
      by.held += 1
      this.#held.set(this.#tags, { entry, by, timer: this.#expiry(this.#tags) })
      this.#say(by, { deliver: this.#tags, text: entry.text, count: entry.count })
    }
  }

  // Whoever has waited longest, and is the last one then.
  #nextSubscriber(): Subscriber | undefined {
    for (const subscriber of this.#subscribers) {
      if (subscriber.paused || subscriber.held >= subscriber.inFlight) continue
      this.#subscribers.delete(subscriber)
      this.#subscribers.add(subscriber)
      return subscriber
    }
    return undefined
  }

  #say({ socket }: Subscriber, said: FromBroker): void {
    socket.write(`${JSON.stringify(said)}\n`)
  }
}
