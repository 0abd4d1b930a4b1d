// One connection through the proxy: two sockets, the messages between them, and the fault that breaks or delays it.

import { connect, type Socket } from 'node:net'
import { type Clock, sleep } from '../../kernel/index.js'
import type { Armed, FaultMoment } from './faults.js'
import { type Frame, FrameReader, startupCode, startupCodes } from './frames.js'
import { type Group, StatementReader } from './statements.js'

/**
 * The state of a connection. `open`: messages pass. `cut`, `black-hole`, `kept`, `late`: after a fault. `closed`: both
 * sockets are closed.
 */
export type ConnectionState = 'open' | 'cut' | 'black-hole' | 'kept' | 'late' | 'closed'

/** What a connection needs of its proxy. */
export interface ConnectionContext {
  readonly id: number
  readonly upstream: { readonly host: string; readonly port: number }
  /** Whether requests for encryption are refused by the proxy or passed to the server. */
  readonly encryption: 'refuse' | 'pass'
  readonly clock: Clock
  /** Returns the faults for a group of statements, or for the opening of the connection. */
  faultsOn(candidates: readonly string[] | 'startup'): readonly Armed[]
}

interface Exchange {
  readonly group: Group
  readonly faults: readonly Armed[]
  answerBegan: boolean
}

// Messages of the server that do not answer a statement: notices, settings, notifications.
const asides = new Set(['N', 'S', 'A'])

/** A client's connection, passed on to the server. */
export class ProxiedConnection {
  readonly #context: ConnectionContext
  readonly #client: Socket
  readonly #server: Socket
  readonly #fromClient = new FrameReader('startup')
  readonly #fromServer = new FrameReader('frames')
  readonly #statements = new StatementReader()
  /** What the server was sent and has not completely answered. */
  readonly #exchanges: Exchange[] = []
  #state: ConnectionState = 'open'
  #hold: Promise<void> | undefined
  #late: Armed | undefined
  #lateIsSent = false
  #bytesToServer = 0
  #bytesToClient = 0
  /** Resolves when both sockets are closed. */
  readonly gone: Promise<void>

  constructor(client: Socket, context: ConnectionContext) {
    this.#context = context
    this.#client = client
    this.#server = connect({ ...context.upstream, allowHalfOpen: true })
    client.setNoDelay(true)
    this.#server.setNoDelay(true)
    this.#listen(client, this.#fromClient, (frame) => this.#clientSent(frame), this.#server)
    this.#listen(this.#server, this.#fromServer, (frame) => this.#serverSent(frame), client)
    const closing = [client, this.#server].map(
      (socket) => new Promise<void>((done) => socket.once('close', () => done())),
    )
    this.gone = Promise.all(closing).then(() => {
      this.#state = 'closed'
      this.#late?.deliveryIsOver()
    })
  }

  get state(): ConnectionState {
    return this.#state
  }

  get bytesToServer(): number {
    return this.#bytesToServer
  }

  get bytesToClient(): number {
    return this.#bytesToClient
  }

  /** Closes both sockets now. */
  destroy(): void {
    this.#client.destroy()
    this.#server.destroy()
  }

  /** Closes what a fault left open: at once, or after a late delivery has been answered. */
  heal(): void {
    if (this.#state === 'late') this.#client.destroy()
    else if (this.#state !== 'open') this.destroy()
  }

  // Chunks are handled one after another, even if a fault makes one wait. Meanwhile the socket is not read.
  #listen(from: Socket, reader: FrameReader, handle: (frame: Frame) => void | Promise<void>, to: Socket): void {
    let work: Promise<void> = Promise.resolve()
    const inOrder = (step: () => void | Promise<void>): void => {
      work = work.then(step).catch(() => this.destroy()) // not this protocol: nothing can be passed on
    }
    from.on('data', (chunk: Buffer) => {
      from.pause()
      inOrder(async () => {
        reader.push(chunk)
        for (let frame = reader.next(); frame !== undefined; frame = reader.next()) {
          while (this.#hold !== undefined) await this.#hold
          await handle(frame)
        }
        from.resume()
      })
    })
    from.on('end', () => inOrder(() => void (this.#state === 'open' && to.end())))
    from.on('error', () => {
      // The other side is reset too, unless a fault has separated the two.
      if (this.#state === 'open') to.resetAndDestroy()
    })
    from.on('close', () => inOrder(() => void (this.#state === 'open' && to.end())))
  }

  #toServer(bytes: Buffer): Promise<void> | undefined {
    if (!this.#server.writable) return undefined
    this.#bytesToServer += bytes.length
    return this.#server.write(bytes) ? undefined : roomIn(this.#server)
  }

  #toClient(bytes: Buffer): Promise<void> | undefined {
    if (!this.#client.writable) return undefined
    this.#bytesToClient += bytes.length
    return this.#client.write(bytes) ? undefined : roomIn(this.#client)
  }

  async #clientSent(frame: Frame): Promise<void> {
    if (this.#state !== 'open') return
    if (this.#fromClient.mode === 'startup') {
      await this.#startup(frame)
      return
    }
    if (this.#fromClient.mode === 'raw') {
      await this.#toServer(frame.bytes)
      return
    }
    const group = this.#statements.take(frame)
    if (group === undefined) return
    await this.#forward(group, group.texts.length === 0 ? [] : this.#context.faultsOn(group.texts))
  }

  async #forward(group: Group, faults: readonly Armed[]): Promise<void> {
    const exchange: Exchange = { group, faults, answerBegan: false }
    if (!(await this.#passes(exchange, 'before-forward'))) return
    if (group.answered) this.#exchanges.push(exchange)
    const room = this.#toServer(group.bytes)
    await this.#passes(exchange, 'after-forward') // first, so that no answer can come between
    await room
  }

  // A request for encryption is followed by another first message; the opening is followed by frames.
  async #startup(frame: Frame): Promise<void> {
    const code = startupCode(frame)
    if (code === startupCodes.ssl || code === startupCodes.gss) {
      if (this.#context.encryption === 'pass') {
        this.#fromServer.mode = 'byte'
        await this.#toServer(frame.bytes)
      } else await this.#toClient(Buffer.from('N'))
      return
    }
    this.#fromClient.mode = 'frames'
    const opens = code !== startupCodes.cancel
    const group = { bytes: frame.bytes, texts: [], answered: opens, endsReady: opens }
    await this.#forward(group, opens ? this.#context.faultsOn('startup') : [])
  }

  async #serverSent(frame: Frame): Promise<void> {
    if (this.#state !== 'open') {
      this.#answerToNobody(frame)
      return
    }
    if (this.#fromServer.mode === 'byte') {
      // The server agreed to encryption: from here on everything is passed on unread.
      const mode = frame.type === 'N' ? 'frames' : 'raw'
      this.#fromServer.mode = mode
      if (mode === 'raw') this.#fromClient.mode = 'raw'
    }
    const head = this.#exchanges[0]
    if (head === undefined || asides.has(frame.type) || this.#fromServer.mode === 'raw') {
      await this.#toClient(frame.bytes)
      return
    }
    const ended = frame.type === 'Z' ? this.#answeredToTheEnd() : []
    for (const exchange of ended.length > 0 ? ended : [head]) {
      const began = exchange.answerBegan
      exchange.answerBegan = true
      if (!began && !(await this.#passes(exchange, 'before-answer'))) return
    }
    for (const exchange of ended) if (!(await this.#passes(exchange, 'between-answers'))) return
    const room = this.#toClient(frame.bytes)
    for (const exchange of ended) if (!(await this.#passes(exchange, 'after-answers'))) return
    await room
  }

  // A ReadyForQuery ends the first group that asked for one, and the groups before it.
  #answeredToTheEnd(): Exchange[] {
    const last = this.#exchanges.findIndex(({ group }) => group.endsReady)
    return this.#exchanges.splice(0, last + 1)
  }

  #answerToNobody(frame: Frame): void {
    if (this.#state !== 'late' || frame.type !== 'Z') return
    this.#answeredToTheEnd()
    if (!this.#lateIsSent || this.#exchanges.length > 0) return
    this.#server.end()
    this.#late?.deliveryIsOver()
  }

  /** Carries out the fault for this moment of an exchange, if there is one. False: nothing more is passed on. */
  async #passes(exchange: Exchange, at: FaultMoment): Promise<boolean> {
    const armed = exchange.faults.find((candidate) => candidate.live && candidate.fault.at === at)
    if (armed === undefined) return this.#state === 'open'
    const { action } = armed.fault
    if (action === 'rst' && (at === 'between-answers' || at === 'after-answers')) {
      await this.#still(armed.fault.delayMs ?? 10)
      if (this.#state !== 'open') return false
    }
    armed.happened({
      at,
      action,
      texts: exchange.group.texts,
      connection: this.#context.id,
      atMs: this.#context.clock.monotonicMs(),
      bytesToServer: this.#bytesToServer,
      bytesToClient: this.#bytesToClient,
    })
    if (action === 'delay') {
      await this.#still(armed.fault.delayMs ?? 100)
      return this.#state === 'open'
    }
    this.#strike(armed, exchange)
    return false
  }

  /** Lets nothing pass for a while. */
  async #still(delayMs: number): Promise<void> {
    const hold = sleep(delayMs, { clock: this.#context.clock, keepAlive: false })
    this.#hold = hold
    await hold
    if (this.#hold === hold) this.#hold = undefined
  }

  #strike(armed: Armed, exchange: Exchange): void {
    const { action, server = 'close', delayMs = 100 } = armed.fault
    if (action === 'black-hole') {
      this.#state = 'black-hole'
      return
    }
    if (action === 'rst') this.#client.resetAndDestroy()
    else this.#client.end()
    if (action === 'late') {
      this.#state = 'late'
      this.#late = armed
      const deliver = (): void => {
        this.#lateIsSent = true
        this.#exchanges.push(exchange)
        this.#toServer(exchange.group.bytes)
      }
      this.#context.clock.setTimer(delayMs, deliver, { keepAlive: false })
      return
    }
    const fate = action === 'half-open' ? 'keep' : server
    this.#state = fate === 'keep' ? 'kept' : 'cut'
    if (fate === 'close') this.#server.end()
    if (fate === 'reset') this.#server.resetAndDestroy()
  }
}

/** Resolves when the socket has sent what it was given, or is closed. */
function roomIn(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      socket.off('drain', done)
      socket.off('close', done)
      resolve()
    }
    socket.on('drain', done)
    socket.on('close', done)
  })
}
