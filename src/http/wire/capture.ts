// What a handler that exists writes to its response of Node, held back until its transaction has committed: nothing of
// it leaves, and it ends up as an answer.

import type { ServerResponse } from 'node:http'
import { type OpenScope, scopeKind } from '../../kernel/index.js'
import { type Answer, isEventStream, mostHeldBytes, notHeld, reply, tooLargeToHold } from '../core/index.js'
import { fieldsBefore } from './fields.js'

const written = ['writeHead', 'write', 'end', 'destroy', 'flushHeaders', 'writeEarlyHints'] as const
const looked = ['headersSent', 'writableEnded', 'finished'] as const
const set = ['setHeader', 'appendHeader', 'removeHeader', 'setHeaders'] as const

/** Whose handler the code at hand belongs to, until the response is closed. */
const handlers = scopeKind<CapturedResponse>('handler of a captured response')

type Callback = (error?: Error | null) => void

/** The handler has destroyed its response, and said no reason: there is nobody to be answered any more. */
export class ResponseCut extends Error {
  constructor() {
    super('The handler has destroyed its response.')
  }
}

/** A response whose handler is at work. What it writes is kept here. */
export class CapturedResponse {
  readonly #response: ServerResponse
  readonly #before: ReturnType<typeof fieldsBefore>
  readonly #own: readonly (readonly [string, PropertyDescriptor | undefined])[]
  readonly #parts: Buffer[] = []
  readonly #ended: (answer: Answer) => void
  readonly #refused: (error: Error) => void
  readonly #cut: ServerResponse['destroy']
  readonly #statusBefore: number
  readonly #scope: OpenScope
  readonly #endsWithRelease: boolean
  #size = 0
  #hasBegun = false
  #isEnded = false
  #isOver = false

  /**
   * @param ended Hears once of the answer, when the handler has ended it.
   * @param refused Hears that there will be no answer: it cannot be held back (ANSWER_NOT_HELD), or the handler has
   * destroyed its response, with an error or without ({@link ResponseCut}). Nothing is thrown, since what writes may be
   * a stream, which nobody could catch it from.
   */
  constructor(response: ServerResponse, ended: (answer: Answer) => void, refused: (error: Error) => void) {
    this.#response = response
    this.#ended = ended
    this.#refused = refused
    this.#cut = response.destroy.bind(response)
    this.#statusBefore = response.statusCode
    this.#before = fieldsBefore(response)
    // A middleware before this one may have set its own: these are put back.
    this.#own = [...written, ...looked].map((name) => [name, Object.getOwnPropertyDescriptor(response, name)])
    this.#replace()
    this.#scope = handlers.open(this)
    // Where it was closed before, nobody tells of it: then release() is the end.
    this.#endsWithRelease = response.closed
    if (!response.closed) response.once('close', () => this.#scope.end())
  }

  /**
   * Calls the handler, or a part of it, in the scopes that this was made in, such as that of a transaction. What it
   * starts is known as its own, however late it writes.
   */
  run<Result>(handler: () => Result): Result {
    return handlers.current() === this ? handler() : this.#scope.call(handler)
  }

  /**
   * The response is as it was before the handler began, and can be answered by others, however long they take: what the
   * handler writes late goes nowhere and harms nobody, and so does what anybody writes once the answer has left.
   */
  release(): void {
    this.#isOver = true
    for (const [name, descriptor] of this.#own) {
      if (descriptor === undefined) delete (this.#response as unknown as Record<string, unknown>)[name]
      else Object.defineProperty(this.#response, name, descriptor)
    }
    if (!this.#response.headersSent) {
      this.#before.restore()
      this.#response.statusCode = this.#statusBefore
    }
    this.#turnLateAway()
    if (this.#endsWithRelease) this.#scope.end()
  }

  #isLate(): boolean {
    return this.#response.closed || handlers.current() === this
  }

  // `finished` is left alone: Node itself sets it.
  #turnLateAway(): void {
    const response = this.#response
    const methods: Record<string, (...given: never[]) => unknown> = this.#methods()
    for (const name of [...written, ...set]) {
      const real = response[name] as (...given: never[]) => unknown
      const late = methods[name] ?? (() => response)
      const value = (...given: never[]): unknown => (this.#isLate() ? late(...given) : real.apply(response, given))
      Object.defineProperty(response, name, { value, configurable: true, writable: true })
    }
    for (const name of ['headersSent', 'writableEnded'] as const) {
      const real = Object.getOwnPropertyDescriptor(response, name)?.get
      const get = (): unknown =>
        this.#isLate() || (real === undefined ? Reflect.get(Object.getPrototypeOf(response), name, response) : real())
      Object.defineProperty(response, name, { get, configurable: true })
    }
    let { statusCode } = response
    Object.defineProperty(response, 'statusCode', {
      configurable: true,
      enumerable: true,
      get: () => statusCode,
      set: (given: number) => {
        if (!this.#isLate()) statusCode = given
      },
    })
  }

  #replace(): void {
    const { response, methods } = { response: this.#response, methods: this.#methods() }
    for (const name of written) {
      Object.defineProperty(response, name, { value: methods[name], configurable: true, writable: true })
    }
    for (const name of looked) {
      const get = (): boolean => this.#isOver || (name === 'headersSent' ? this.#hasBegun : this.#isEnded)
      Object.defineProperty(response, name, { get, configurable: true })
    }
  }

  #methods(): Record<(typeof written)[number], (...given: never[]) => unknown> {
    return {
      writeHead: (status: number, ...rest: unknown[]) => {
        if (this.#isOver) return this.#response
        this.#response.statusCode = status
        const [fields] = rest.slice(-1)
        if (typeof fields === 'object' && fields !== null) setAll(this.#response, fields)
        this.#begin()
        return this.#response
      },
      write: (part: unknown, encoding?: unknown, callback?: unknown) => {
        this.#take(part, encoding)
        called(callback ?? encoding)
        return true
      },
      end: (part?: unknown, encoding?: unknown, callback?: unknown) => {
        const then = [part, encoding, callback].find((given) => typeof given === 'function')
        if (typeof then === 'function') this.#response.once('finish', then as () => void)
        if (typeof part !== 'function' && part !== undefined && part !== null) this.#take(part, encoding)
        this.#end()
        return this.#response
      },
      // As `stream.pipeline` does where what it reads fails: there will be no answer, so nothing is to be waited for.
      destroy: (error?: unknown) => {
        if (this.#isOver) return this.#response
        this.#cut(error as Error)
        if (!this.#isEnded) this.#refuse(error instanceof Error ? error : new ResponseCut())
        return this.#response
      },
      // What was set goes with the answer.
      flushHeaders: () => {
        if (!this.#isOver) this.#begin()
      },
      writeEarlyHints: (_hints: unknown, callback?: unknown) => called(callback),
    }
  }

  #begin(): void {
    if (this.#hasBegun) return
    const type = String(this.#response.getHeader('content-type') ?? '')
    this.#hasBegun = true
    if (isEventStream(type)) this.#refuse(notHeld('A stream of events'))
    if (this.#response.statusCode < 200) this.#refuse(notHeld('A change of the protocol'))
  }

  #take(part: unknown, encoding: unknown): void {
    if (this.#isOver || this.#isEnded) return
    this.#begin()
    if (this.#isEnded) return
    const bytes =
      typeof part === 'string'
        ? Buffer.from(part, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8')
        : Buffer.from(part as Uint8Array)
    this.#size += bytes.length
    if (this.#size > mostHeldBytes) this.#refuse(tooLargeToHold())
    else this.#parts.push(bytes)
  }

  #refuse(error: Error): void {
    this.#isEnded = true
    this.#parts.length = 0
    this.#refused(error)
  }

  #end(): void {
    if (this.#isOver || this.#isEnded) return
    this.#begin()
    if (this.#isEnded) return
    this.#isEnded = true
    const { statusCode } = this.#response
    const headers = this.#before.changed()
    this.#ended({
      ...reply(statusCode),
      headers,
      body: this.#size === 0 ? null : Buffer.concat(this.#parts, this.#size),
    })
  }
}

// As `writeHead` takes them: an object, a list of pairs, or names and values in turn.
function setAll(response: ServerResponse, fields: object): void {
  if (!Array.isArray(fields)) {
    for (const [name, value] of Object.entries(fields))
      if (value !== undefined) response.setHeader(name, value as string)
    return
  }
  const pairs = Array.isArray(fields[0]) ? (fields as [string, string][]) : pairsOf(fields as string[])
  for (const [name] of pairs) response.removeHeader(name)
  for (const [name, value] of pairs) response.appendHeader(name, value)
}

function pairsOf(flat: readonly string[]): readonly (readonly [string, string])[] {
  return flat.flatMap((name, place) => (place % 2 === 0 ? [[name, flat[place + 1] as string] as const] : []))
}

function called(callback: unknown): void {
  if (typeof callback === 'function') queueMicrotask(() => (callback as Callback)())
}
