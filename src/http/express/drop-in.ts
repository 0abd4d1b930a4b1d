// The drop-in form for Express: a middleware in front of a handler that exists, in the same route.

import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { isPromiseLike, RepriseError, warnOnce } from '../../kernel/index.js'
import { type Answer, type DropInOptions, dropInRoute, type Principal, type RouteDomain } from '../core/index.js'
import { CapturedResponse, misplaced, mountedTwice, parsedFacts, ResponseCut, sendToNode } from '../wire/index.js'

/** One request on its way through a route whose handler exists. */
interface Flight {
  readonly response: Response
  readonly next: NextFunction
  /** What the handler writes to; present once it was run. */
  captured?: CapturedResponse
  /** Ends the handler's turn with an error; present until it has answered. */
  fail?: ((error: unknown) => void) | undefined
  /** What ended the handler's turn before it answered. */
  failure?: { readonly error: unknown }
}

/** The handler left the route by `next()` or `next('route')`: the request is for others to answer. */
class PassedOn extends Error {
  readonly command: 'route' | 'router' | undefined

  constructor(command: 'route' | 'router' | undefined) {
    super('The handler passed the request on.')
    this.command = command
  }
}

const flights = new WeakMap<Request, Flight>()

const advice = 'Let the parser keep the bytes: express.json({ verify: keepRawBody }).'

/**
 * Says which store `req.tx` belongs to, for the compiler, once in a program:
 * `declare module 'reprise/http/express' { interface Register { db: typeof db } }`. Otherwise `req.tx` can be anything.
 */
// biome-ignore lint/suspicious/noEmptyInterface: it is for programs to fill in.
export interface Register {}

/** The type of `req.tx`. */
// biome-ignore lint/suspicious/noExplicitAny: without a word of the program nobody knows its store.
export type RequestTransaction = Register extends { readonly db: RouteDomain<infer Handle> } ? Handle : any

declare global {
  namespace Express {
    interface Request {
      /** The open transaction, behind `idempotency(db, …)`. Refused with TRANSACTION_OVER once the handler answered. */
      readonly tx: RequestTransaction
    }
  }
}

/**
 * A middleware that makes the handler behind it repeatable, as it is: `req.tx` is the open transaction, and what the
 * handler writes to its response leaves after COMMIT. An error, a status of 5xx and a deadline roll back, and nothing
 * is stored. The handler runs once; what is given up for that, beside {@link idempotent}: a transaction that could not
 * be serialized is not run again but answered with a 503 that can be repeated.
 *
 * @example
 * ```ts
 * import express from 'express'
 * import { idempotency } from 'reprise/http/express'
 * import { memory } from 'reprise/stores/memory'
 *
 * const db = memory({ name: 'shop' })
 * db.table('payment', { unique: [['id']] })
 * const app = express().use(express.json())
 * app.post('/payments', idempotency(db, { name: 'pay', principal: () => 'ada' }), async (req, res) => {
 *   await req.tx.insertOnce('payment', req.body, ['id'])
 *   res.status(201).json({ paid: true })
 * })
 * ```
 */
export function idempotency<Handle, Who extends Principal = Principal>(
  db: RouteDomain<Handle>,
  options: DropInOptions<Request, Who>,
): RequestHandler {
  const route = dropInRoute<Request, Handle, Who>(db, options, ({ tx, native }) => handled(native, tx))
  const middleware: RequestHandler = async (request, response, next) => {
    const flight: Flight = { response, next }
    const { next: forOthers } = request
    try {
      watchRoute(request, middleware)
      flights.set(request, flight)
      const { originalUrl: target, params, body: parsed } = request
      const facts = parsedFacts(request, { target, params, parsed, advice })
      const answer = await route.handle(facts, request)
      flight.captured?.release()
      await sendToNode(response, answer)
    } catch (error) {
      // From here on its handlers are those of anybody.
      flights.delete(request)
      flight.captured?.release()
      request.next = forOthers as NextFunction
      // Nobody is left to be answered where the handler itself has cut the connection.
      if (!(error instanceof ResponseCut)) next(error instanceof PassedOn ? error.command : error)
    } finally {
      flight.fail = undefined
    }
  }
  middlewares.add(middleware)
  return middleware
}

// Runs the rest of the route, and waits for what it answers.
async function handled(request: Request, tx: unknown): Promise<Answer> {
  const flight = flights.get(request) as Flight
  let isOpen = true
  try {
    return await new Promise<Answer>((resolve, reject) => {
      const fail = (error: unknown): void => {
        flight.failure ??= { error }
        reject(error)
      }
      flight.fail = fail
      flight.captured = new CapturedResponse(flight.response, resolve, fail)
      const get = (): unknown => {
        if (isOpen && !flight.response.writableEnded) return tx
        throw new RepriseError('TRANSACTION_OVER', 'The request was answered, and its transaction is over.')
      }
      Object.defineProperty(request, 'tx', { configurable: true, get })
      // By which res.sendFile(), res.download() and res.render() tell of their errors. It leads out of the route.
      request.next = (error?: unknown) => {
        const isWord = !error || error === 'route' || error === 'router'
        failedIn(flight, isWord ? new PassedOn(error === 'router' ? error : 'route') : error)
      }
      flight.captured.run(flight.next)
    })
  } finally {
    isOpen = false
    flight.fail = undefined
  }
}

/** A handler in the stack of a route of Express. */
interface Layer {
  handle: (this: unknown, request: Request, response: Response, next: NextFunction) => unknown
  readonly method?: string
}

const middlewares = new WeakSet<Layer['handle']>()
const watched = new WeakSet<Layer['handle']>()

// Express has no way to be told of the error of a handler before it looks for who answers it, and an answer to an error
// must not commit what the handler wrote. So the handlers of the route are called through a function that sees it.
function watchRoute(request: Request, middleware: Layer['handle']): void {
  const all = (request.route as { readonly stack?: readonly Layer[] } | undefined)?.stack ?? []
  const stack = layersFor(request, all)
  if (!stack.some(({ handle }) => handle === middleware))
    throw misplaced(
      'It is mounted in the route, before its handler: app.post(path, idempotency(db, options), handler).',
    )
  if (stack.filter(({ handle }) => middlewares.has(handle)).length > 1) throw mountedTwice()
  for (const layer of stack) {
    // A function of four is for errors.
    if (layer.handle === middleware || watched.has(layer.handle) || layer.handle.length > 3) continue
    layer.handle = watching(layer, all)
    watched.add(layer.handle)
  }
}

// A route may have handlers for several methods; those for GET answer HEAD where none is for that.
function layersFor({ method }: Request, all: readonly Layer[]): readonly Layer[] {
  const sent = method.toLowerCase()
  const wanted = sent === 'head' && all.every((layer) => layer.method !== sent) ? 'get' : sent
  return all.filter((layer) => layer.method === undefined || layer.method === wanted)
}

function watching(layer: Layer, stack: readonly Layer[]): Layer['handle'] {
  const { handle } = layer
  return function (request, response, next) {
    const flight = flights.get(request)
    const { captured } = flight ?? {}
    if (flight === undefined || captured === undefined) return handle.call(this, request, response, next)
    const failed = (error: unknown): void => failedIn(flight, error)
    const goOn: NextFunction = (error?: unknown) => {
      if (error === 'route' || error === 'router') failed(new PassedOn(error))
      else if (error) failed(error)
      else if (lastOf(request, stack) === layer) failed(new PassedOn(undefined))
      else next()
    }
    try {
      // The layer before it may have gone on from an event of a connection that it shares with other requests, which
      // knows nothing of this transaction.
      const returned = captured.run(() => handle.call(this, request, response, goOn))
      if (isPromiseLike(returned)) Promise.resolve(returned).catch(failed)
    } catch (error) {
      failed(error)
    }
    return undefined
  }
}

function lastOf(request: Request, stack: readonly Layer[]): Layer | undefined {
  return layersFor(request, stack)
    .filter(({ handle }) => handle.length <= 3)
    .at(-1)
}

// After its answer the handler's turn is over, and so is its transaction: nobody is left to be told but people.
function failedIn({ fail, failure, response }: Flight, error: unknown): void {
  if (fail !== undefined && !response.writableEnded) fail(error)
  else if (!(error instanceof PassedOn) && failure?.error !== error) {
    const name = error instanceof Error ? error.name : typeof error
    const end = failure === undefined ? 'answered. Its answer was sent' : 'failed before. That failure counts'
    warnOnce('HANDLER_FAILED_LATE', `A handler of Express failed (${name}) after it had ${end}.`)
  }
}
