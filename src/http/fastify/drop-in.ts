// The drop-in form for Fastify: hooks of a route whose handler exists.

import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { RepriseError } from '../../kernel/index.js'
import { type Answer, type DropInOptions, dropInRoute, type Principal, type RouteDomain, reply } from '../core/index.js'
import { fieldsBefore, held, type KeptBytes, parsedFacts } from '../wire/index.js'
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
  readonly fields: ReturnType<typeof fieldsBefore>
  /** Lets the handler run; it does so in the context of the transaction. */
  readonly go: () => void
  /** What the route comes to. */
  readonly result: Promise<Answer>
  /** Whether the handler has answered or thrown, or somebody answers in its place. */
  hasAnswered?: true
  /** Ends the handler's turn; present while it is at work. */
  end?: { readonly answer: (answer: Answer) => void; readonly fail: (error: unknown) => void } | undefined
}

/** The hooks of a route, to be given as its options. */
export interface DropInHooks {
  readonly preHandler: (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void
  readonly onSend: (request: FastifyRequest, reply: FastifyReply, payload: unknown) => Promise<unknown>
  readonly errorHandler: (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => Promise<never>
}

/**
 * Options of a route that make its handler repeatable, as it is: `request.tx` is the open transaction, and what the
 * handler answers leaves after COMMIT. An error, a status of 5xx and a deadline roll back, and nothing is stored. The
 * handler runs once; what is given up for that, beside `idempotent`: a transaction that could not be serialized is not
 * run again but answered with a 503 that can be repeated. Other options of the route are added by
 * `{ schema, ...idempotency(db, options) }`.
 *
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
export function idempotency<Handle, Who extends Principal = Principal>(
  db: RouteDomain<Handle>,
  options: DropInOptions<FastifyRequest, Who>,
): DropInHooks {
  const flights = new WeakMap<FastifyRequest, Flight>()
  const route = dropInRoute<FastifyRequest, Handle, Who>(db, options, ({ tx, native }) =>
    handled(native, flights.get(native) as Flight, tx),
  )
  return {
    // With a callback: what it calls goes on in the context of its caller, which is that of the transaction.
    preHandler: (request, replied, done) => {
      const { originalUrl: target, raw, body: parsed } = request
      const params = request.params as Readonly<Record<string, unknown>>
      const { rawBody: kept } = request as { readonly rawBody?: KeptBytes }
      const facts = parsedFacts(raw, { target, params, kept, parsed })
      const result = held(replied.raw, () => route.handle(facts, request))
      const flight: Flight = { fields: fieldsBefore(fieldsIn(replied)), go: done, result }
      flights.set(request, flight)
      // The handler did not have to run, or its time was over before it answered. What it has answered is sent by
      // onSend.
      const answers = (): boolean => {
        const isOurs = !flight.hasAnswered
        flight.hasAnswered = true
        flight.end = undefined
        return isOurs
      }
      result.then(
        (answer) => answers() && void replied.send(payloadOf(replied, answer)),
        (error) => answers() && void replied.send(error),
      )
    },
    onSend: async (request, replied, payload) => {
      const flight = flights.get(request)
      if (flight?.end === undefined) return payload
      const { changed, restore } = flight.fields
      const { end } = flight
      flight.hasAnswered = true
      flight.end = undefined
      end.answer({ ...reply(replied.statusCode, payload), headers: changed() })
      const answer = await flight.result
      restore()
      return payloadOf(replied, answer)
    },
    // What the handler threw. It is thrown again after the roll-back, for the error handlers of the application.
    errorHandler: async (error, request) => {
      const flight = flights.get(request)
      const end = flight?.end
      if (flight !== undefined && end !== undefined) {
        flight.hasAnswered = true
        flight.end = undefined
        end.fail(error)
        await flight.result.catch(() => undefined)
      }
      throw error
    },
  }
}

async function handled(request: FastifyRequest, flight: Flight, tx: unknown): Promise<Answer> {
  const get = (): unknown => {
    if (flight.end !== undefined) return tx
    throw new RepriseError('TRANSACTION_OVER', 'The request was answered, and its transaction is over.')
  }
  return new Promise<Answer>((answer, fail) => {
    flight.end = { answer, fail }
    Object.defineProperty(request, 'tx', { configurable: true, get })
    flight.go()
  })
}
