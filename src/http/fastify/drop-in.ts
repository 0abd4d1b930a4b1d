// The drop-in form for Fastify: hooks of a route whose handler exists.

import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { RepriseError } from '../../kernel/index.js'
import {
  type Answer,
  type DropInOptions,
  dropInRoute,
  notHeld,
  type Principal,
  type RouteDomain,
  reply,
} from '../core/index.js'
import { fieldsBefore, held, type KeptBytes, misplaced, parsedFacts } from '../wire/index.js'
import { fieldsIn, payloadOf } from './answer.js'

/**
 * Says which store `request.tx` belongs to, for the compiler, once in a program:
 * `declare module 'reprise/http/fastify' { interface Register { db: typeof db } }`. Otherwise it can be anything.
 */
// biome-ignore lint/suspicious/noEmptyInterface: it is for programs to fill in.
export interface Register {}

/** The type of `request.tx`. */
// biome-ignore lint/suspicious/noExplicitAny: without a word of the program nobody knows its store.
export type RequestTransaction = Register extends { readonly db: RouteDomain<infer Handle> } ? Handle : any

declare module 'fastify' {
  interface FastifyRequest {
    /** The open transaction, behind `idempotency(db, …)`. Refused with TRANSACTION_OVER once the handler answered. */
    readonly tx: RequestTransaction
  }
}

/** One request on its way through a route whose handler exists. */
interface Flight {
  readonly replied: FastifyReply
  readonly fields: ReturnType<typeof fieldsBefore>
  /** Lets the handler run; it does so in the context of the transaction. */
  readonly go: () => void
  /** What the route comes to. */
  readonly result: Promise<Answer>
  /** Whether the handler has answered or thrown, or somebody answers in its place. */
  hasAnswered?: boolean
  /** Whether its answer waits for COMMIT. */
  isSending?: boolean
  /** Ends the handler's turn; present while it is at work. */
  end?: { readonly answer: (answer: Answer) => void; readonly fail: (error: unknown) => void } | undefined
}

type Before = DropInRoute<object>['preHandler'][number]
type OnSend = DropInRoute<object>['onSend'][number]
type OnError = (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => unknown

/** The options of a route with the hooks of {@link idempotency} among its own. */
export type DropInRoute<Route> = Omit<Route, 'preHandler' | 'onSend' | 'errorHandler'> & {
  readonly preHandler: ((request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void)[]
  readonly onSend: ((request: FastifyRequest, reply: FastifyReply, payload: unknown) => Promise<unknown>)[]
  readonly errorHandler: (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => Promise<unknown>
}

/**
 * Options of a route that make its handler repeatable, as it is: `request.tx` is the open transaction, and what the
 * handler answers leaves after COMMIT. An error, a status of 5xx and a deadline roll back, and nothing is stored. The
 * handler runs once; what is given up for that, beside `idempotent`: a transaction that could not be serialized is not
 * run again but answered with a 503 that can be repeated.
 *
 * @param own The other options of the route, such as its schema and hooks of its own, which run before these. Spread
 * beside what this returns, hooks of the same name would replace one another: that is refused where it is seen.
 * @example
 * ```ts
 * import { fastify } from 'fastify'
 * import { idempotency } from 'reprise/http/fastify'
 * import { memory } from 'reprise/stores/memory'
 *
 * const db = memory({ name: 'shop' })
 * db.table('payment', { unique: [['id']] })
 * const app = fastify()
 * app.post('/payments', idempotency(db, { name: 'pay', principal: () => 'ada' }), async (request, reply) => {
 *   await request.tx.insertOnce('payment', request.body, ['id'])
 *   return reply.code(201).send({ paid: true })
 * })
 * ```
 */
export function idempotency<Handle, Who extends Principal = Principal, Route extends object = object>(
  db: RouteDomain<Handle>,
  options: DropInOptions<FastifyRequest, Who>,
  own?: Route,
): DropInRoute<Route> {
  const flights = new WeakMap<FastifyRequest, Flight>()
  const route = dropInRoute<FastifyRequest, Handle, Who>(db, options, ({ tx, native }) =>
    handled(native, flights.get(native) as Flight, tx),
  )
  // With a callback: what it calls goes on in the context of its caller, which is that of the transaction.
  const reprisePreHandler: Before = (request, replied, done) => {
    const refusal = misplacedIn(request)
    if (refusal !== undefined) {
      done(refusal)
      return
    }
    const { originalUrl: target, raw, body: parsed } = request
    const params = request.params as Readonly<Record<string, unknown>>
    const { rawBody: kept } = request as { readonly rawBody?: KeptBytes }
    const facts = parsedFacts(raw, { target, params, kept, parsed })
    const notRaw = (): RepriseError => notHeld('What a handler writes to reply.raw')
    const result = held(replied.raw, () => route.handle(facts, request), notRaw)
    const flight: Flight = { replied, fields: fieldsBefore(fieldsIn(replied)), go: done, result }
    flights.set(request, flight)
    result.then(
      (answer) => answerInPlace(flight, replied, () => payloadOf(replied, answer)),
      (error) => answerInPlace(flight, replied, () => error),
    )
  }
  const repriseOnSend: OnSend = async (request, replied, payload) => {
    const flight = flights.get(request)
    if (flight === undefined) refuseOnce(request)
    // A second answer, while the first one waits for COMMIT, is nobody's.
    if (flight?.isSending === true) return new Promise(() => undefined)
    if (flight?.end === undefined) return payload
    const { end } = flight
    const { changed, restore } = flight.fields
    flight.hasAnswered = true
    flight.isSending = true
    flight.end = undefined
    try {
      end.answer(answerIn(replied.statusCode, payload, changed()))
      const answer = await flight.result
      restore()
      return payloadOf(replied, answer)
    } finally {
      flight.isSending = false
    }
  }
  const hooks = own as
    | { preHandler?: Before | Before[]; onSend?: OnSend | OnSend[]; errorHandler?: OnError }
    | undefined
  // What the handler threw. It goes on after the roll-back, to the error handlers of the route and the application.
  const repriseErrorHandler: OnError = async (error, request, replied) => {
    await rolledBack(flights.get(request), error)
    if (hooks?.errorHandler === undefined) throw error
    return hooks.errorHandler(error, request, replied)
  }
  return {
    ...(own as Route),
    preHandler: [...[hooks?.preHandler ?? []].flat(), reprisePreHandler],
    onSend: [...[hooks?.onSend ?? []].flat(), repriseOnSend],
    errorHandler: repriseErrorHandler,
  } as DropInRoute<Route>
}

async function rolledBack(flight: Flight | undefined, error: unknown): Promise<void> {
  if (flight?.end === undefined) return
  const { end } = flight
  flight.hasAnswered = true
  flight.end = undefined
  end.fail(error)
  await flight.result.catch(() => undefined)
}

// The handler did not have to run, or its time was over before it answered. What it has answered is sent by onSend.
function answerInPlace(flight: Flight, replied: FastifyReply, payload: () => unknown): void {
  if (flight.hasAnswered) return
  flight.hasAnswered = true
  flight.end = undefined
  // A handler that took the reply for itself has not ended it: nobody else can.
  if (replied.sent) replied.raw.destroy()
  else void replied.send(payload())
}

function answerIn(status: number, payload: unknown, headers: [string, string][]): Answer {
  if (!(payload instanceof Response)) return { ...reply(status, payload), headers }
  return { ...reply(payload.status), headers: [...headers, ...payload.headers], body: payload.body }
}

interface RouteContext {
  readonly preHandler: unknown
  readonly onSend: unknown
  readonly errorHandler: { readonly func?: unknown } | null
}

// A route whose options were put together by spreading may have lost one of the hooks, and with it the roll-back. Each
// of those that are left looks for the others.
function misplacedIn(request: FastifyRequest): RepriseError | undefined {
  const name = Object.getOwnPropertySymbols(request).find(({ description }) => description === 'fastify.context')
  const context = name && (request as unknown as Record<symbol, RouteContext | undefined>)[name]
  if (context === undefined) return undefined
  const { preHandler, onSend, errorHandler } = context
  if ([preHandler, onSend, errorHandler?.func].every((hooks) => [hooks].flat().some(isOurs))) return undefined
  const message =
    'Its hooks were replaced. Give the other options of the route to idempotency(db, options, { schema, preHandler, … }).'
  return misplaced(message)
}

const refused = new WeakSet<FastifyRequest>()

// The answer to a request that did not come as far as the transaction. The refusal itself is such an answer, too.
function refuseOnce(request: FastifyRequest): void {
  const refusal = refused.has(request) ? undefined : misplacedIn(request)
  if (refusal === undefined) return
  refused.add(request)
  throw refusal
}

// By its name, since Fastify binds hooks to its instance.
function isOurs(hook: unknown): boolean {
  return typeof hook === 'function' && hook.name.replace('bound ', '').startsWith('reprise')
}

async function handled(request: FastifyRequest, flight: Flight, tx: unknown): Promise<Answer> {
  const get = (): unknown => {
    if (flight.end !== undefined) return tx
    throw new RepriseError('TRANSACTION_OVER', 'The request was answered, and its transaction is over.')
  }
  const { replied } = flight
  const { hijack } = replied
  replied.hijack = () => {
    if (flight.end !== undefined) throw notHeld('What a handler sends by itself (reply.hijack)')
    return hijack.call(replied)
  }
  return new Promise<Answer>((answer, fail) => {
    flight.end = { answer, fail }
    Object.defineProperty(request, 'tx', { configurable: true, get })
    flight.go()
  })
}
