// Repeatable routes for Nest 11 on Express: decorators for methods of controllers, an interceptor behind each, and the
// store by injection.

import type { ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { CallHandler, DynamicModule, ExecutionContext, NestInterceptor } from '@nestjs/common'
import type { HttpAdapterHost } from '@nestjs/core'
import type { Request } from 'express'
import type { Observable } from 'rxjs'
import type { RecordStore } from '../../idempotency/index.js'
import { defined, RepriseError } from '../../kernel/index.js'
import {
  AnswerError,
  type Answered,
  type AtomicHandlerCall,
  type AtomicRouteOptions,
  atomicRoute,
  type HandlerCall,
  type LeasedHandlerCall,
  type LeasedRoute,
  type LeasedRouteOptions,
  leasedRoute,
  type Route,
  type RouteDomain,
} from '../core/index.js'
import { held, nodeFacts, sendToNode } from '../wire/index.js'
import { runToMethod, sayEntry } from './entered.js'
import {
  type AnswerBefore,
  answerFrom,
  demandStorable,
  exceptionOf,
  redirectOf,
  routeArguments,
  saidOf,
  writerIn,
} from './returned.js'

export { AnswerError, HttpRequest, invalid, reply } from '../core/index.js'

/** The token of the store that routes use: provide it, or let {@link RepriseModule} do so. */
export const repriseStore: unique symbol = Symbol('reprise store')

/** A store for routes: a domain for `@Idempotent`, any store of records for `@IdempotentLeased`. */
export type NestStore = RouteDomain<never> | RecordStore

/** Provides the store of all routes: `imports: [RepriseModule.forRoot(db)]`. */
// biome-ignore lint/complexity/noStaticOnlyClass: a module of Nest is a class.
export class RepriseModule {
  /** The module, for the whole application. */
  static forRoot(store: object): DynamicModule {
    const providers = [{ provide: repriseStore, useValue: store }]
    return { module: RepriseModule, global: true, providers, exports: [repriseStore] }
  }
}

/**
 * Makes a method of a controller a route in the domain: it runs inside the transaction that {@link Tx} gives it, and
 * what it returns leaves after COMMIT and is replayed to repeats. It returns what it always does, with the status that
 * Nest has for it (a `StreamableFile` and `@Redirect` included), or what `reply(…)` makes. An `HttpException` below 500
 * that it throws is an answer; any other error goes to the exception filters, and so does whatever a pipe throws, which
 * leaves the key free. Guards run before, on every request. Wrong options are refused when the application starts, like
 * by {@link atomicRoute}.
 *
 * @example
 * ```ts
 * import { Body, Controller, Post } from '@nestjs/common'
 * import { Idempotent, Tx } from 'reprise/http/nest'
 * import type { MemoryTransaction } from 'reprise/stores/memory'
 *
 * @Controller('payments')
 * class Payments {
 *   @Post()
 *   @Idempotent({ name: 'pay', principal: (request) => request.get('x-user') })
 *   async pay(@Tx() tx: MemoryTransaction, @Body() payment: { id: string }) {
 *     await tx.insertOnce('payment', payment, ['id'])
 *     return { paid: payment.id }
 *   }
 * }
 * ```
 */
export function Idempotent<Input = undefined>(options: AtomicRouteOptions<Request, Input>): MethodDecorator {
  return routed((store, runs) =>
    atomicRoute<Request, unknown, Input>(store as RouteDomain<unknown>, withExceptions(options), (call) =>
      runs.run(call),
    ),
  )
}

/**
 * Makes a method of a controller a route whose effect lies outside the store, under the lease that {@link Call} gives
 * it. Otherwise as {@link Idempotent}.
 */
export function IdempotentLeased<Input = undefined>(options: LeasedRouteOptions<Request, Input>): MethodDecorator {
  return routed((store, runs) => {
    const route = leasedRoute<Request, Input>(store as RecordStore, withExceptions(options), (call) => runs.run(call))
    leasedIn(store).set(options.name, route)
    return route
  })
}

/**
 * Makes a method of a controller, for `GET`, the status of the work of an `@IdempotentLeased` route: see
 * {@link LeasedRoute}. The method itself is not called.
 *
 * @param name The name of the route.
 * @example
 * ```ts
 * import { Controller, Get, Post } from '@nestjs/common'
 * import { IdempotentLeased, WorkStatus } from 'reprise/http/nest'
 * import { rerunKeyed } from 'reprise/idempotency'
 *
 * const options = { name: 'reports', respond: 'async', principal: () => 'ada', recover: rerunKeyed('24h') } as const
 *
 * @Controller('reports')
 * class Reports {
 *   @Post()
 *   @IdempotentLeased(options)
 *   make() {
 *     return { made: true }
 *   }
 *
 *   @Get('work/:id')
 *   @WorkStatus('reports')
 *   status() {}
 * }
 * ```
 */
export function WorkStatus(name: string): MethodDecorator {
  return routed((store) => ({
    name,
    // Asked for with each request: the route may be made after its status.
    handle: (facts, native) => {
      const route = leasedIn(store).get(name)
      if (route !== undefined) return route.status.handle(facts, native)
      const message = `There is no leased route ${name} in this application, whose status could be told.`
      throw new RepriseError('OPERATION_INVALID', message, { details: { option: 'name' } })
    },
  }))
}

// The leased routes of an application, by the store that it was given.
const leasedRoutes = new WeakMap<object, Map<string, LeasedRoute<Request>>>()

function leasedIn(store: unknown): Map<string, LeasedRoute<Request>> {
  const known = leasedRoutes.get(store as object) ?? new Map<string, LeasedRoute<Request>>()
  leasedRoutes.set(store as object, known)
  return known
}

/** What a method of a route may be given by {@link Call}. */
export type NestCall<Input = undefined, Handle = unknown> =
  | AtomicHandlerCall<Request, Handle, Input>
  | LeasedHandlerCall<Request, Input>

/** A parameter: the whole call, or one part of it, such as `@Call('key')` or `@Call('lease')`. */
export function Call(part?: keyof AtomicHandlerCall<unknown, unknown, unknown> | 'lease'): ParameterDecorator {
  return nest().createParamDecorator((_data: unknown, context: ExecutionContext) => {
    const call = calls.get(context.switchToHttp().getRequest<Request>())
    return part === undefined ? call : Object(call)[part]
  })()
}

/** A parameter: the open transaction. */
export function Tx(): ParameterDecorator {
  return Call('tx')
}

// Found when the first decorator is used, so that the module can be imported where Nest is not installed.
const load = createRequire(import.meta.url)
const nest = (): typeof import('@nestjs/common') => load('@nestjs/common')
const core = (): typeof import('@nestjs/core') => load('@nestjs/core')
const rxjs = (): typeof import('rxjs') => load('rxjs')

// The call of the run that is under way, for the decorators of parameters.
const calls = new WeakMap<Request, HandlerCall<Request, unknown>>()

interface Runs {
  run(call: HandlerCall<Request, unknown>): Promise<Answered>
}

type Mounted = Pick<Route<Request>, 'name' | 'handle'> & Partial<Pick<LeasedRoute<Request>, 'drain'>>

type Define = (store: unknown, runs: Runs) => Mounted

const advice =
  'Create the application with { rawBody: true }, or with { bodyParser: false } where no other route needs a parser.'

function routed(define: Define): MethodDecorator {
  return (target, name, descriptor) => {
    // Looked at before this route adds a response of its own.
    const writer = writerIn(target, name)
    // One class for each route, so that Nest makes it, and the route is checked, when the application starts.
    class RouteInterceptor implements NestInterceptor {
      readonly #route: Mounted
      readonly #contexts = new WeakMap<Request, Arrived>()

      constructor(store: unknown, host: HttpAdapterHost) {
        demandStorable(Object(target)[name], writer)
        demandExpress(host)
        this.#route = define(store, { run: (call) => this.#run(call) })
      }

      intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
        const http = context.switchToHttp()
        const [request, response] = [http.getRequest<Request>(), http.getResponse<ServerResponse>()]
        this.#contexts.set(request, { method: context.getHandler(), response, said: saidOf(response), next })
        return rxjs().from(this.#answer(request, response, context.getHandler()))
      }

      // As Nest shuts down: requests are answered, and stores are closed after it.
      async beforeApplicationShutdown(): Promise<void> {
        await this.#route.drain?.()
      }

      async #answer(request: Request, response: ServerResponse, method: object): Promise<void> {
        const { originalUrl: target, params } = request
        const facts = nodeFacts(request, { target, params, advice })
        const answer = await held(response, () => this.#route.handle(facts, request).catch(throwOwn))
        await sendToNode(response, answer)
        // Nest redirects once the interceptors are done, and there is nothing left to send.
        if (redirectOf(method) !== undefined) Object.assign(response, { redirect: () => undefined })
      }

      async #run(call: HandlerCall<Request, unknown>): Promise<Answered> {
        const { method, response, said, next } = this.#contexts.get(call.native) as Arrived
        calls.set(call.native, call)
        const end = await runToMethod(() => rxjs().lastValueFrom(next.handle(), { defaultValue: undefined }))
        // Behind a 202 the response says what was accepted, and not what Nest has for the method.
        if (end.thrown === undefined) return answerFrom(end.value, method, response.headersSent ? said : response)
        throw end.thrown.isEntered ? end.thrown.error : refusedBefore(end.thrown.error, call)
      }
    }
    const { Inject, Injectable, Res, UseInterceptors } = nest()
    Injectable()(RouteInterceptor)
    Inject(repriseStore)(RouteInterceptor, undefined, 0)
    Inject(core().HttpAdapterHost)(RouteInterceptor, undefined, 1)
    sayEntry(target, name, descriptor)
    UseInterceptors(RouteInterceptor)(target, name, descriptor)
    // Tells Nest, in its own words, that the answer is sent by the route: status and bytes are the stored ones.
    Res()(target, name, argumentsOf(target, name))
  }
}

interface Arrived {
  readonly method: object
  readonly response: ServerResponse
  /** What it said when the request arrived. */
  readonly said: AnswerBefore
  readonly next: CallHandler
}

// What was thrown before the method was entered, which goes to the exception filters. Not known by the error itself: a
// pipe and a method may throw one and the same.
class RefusedBefore extends Error {
  readonly thrown: unknown

  constructor(thrown: unknown) {
    super('The method of a route was not entered.', { cause: thrown })
    this.thrown = thrown
  }
}

function throwOwn(error: unknown): never {
  throw error instanceof RefusedBefore ? error.thrown : error
}

// Nothing was done yet, so nothing is kept: the key stays free for the request that was meant.
function refusedBefore(error: unknown, call: object): Error {
  const { lease } = call as Partial<LeasedHandlerCall<Request, unknown>>
  const { answer, problem } = error instanceof AnswerError ? error : {}
  const refused =
    answer === undefined
      ? new RefusedBefore(error)
      : new AnswerError(answer, { kept: false, cause: error, ...defined({ problem }) })
  return lease === undefined ? refused : lease.notSent(refused)
}

// The place behind all parameters that are given something.
function argumentsOf(target: object, name: string | symbol): number {
  const method = Object(target)[name] as { readonly length: number }
  return Math.max(method.length, ...Object.values(routeArguments(target, name)).map(({ index }) => index + 1))
}

// Requests and responses of Fastify have other shapes, of which no request could be answered.
function demandExpress({ httpAdapter }: HttpAdapterHost): void {
  const type: unknown = httpAdapter?.getType?.()
  if (type !== 'fastify') return
  const message =
    'Repeatable routes of Nest need its Express platform. On Fastify, mount reprise/http/fastify on the instance itself.'
  throw new RepriseError('OPERATION_INVALID', message, { details: { option: 'httpAdapter' } })
}

function withExceptions<Options extends { readonly answerOf?: (error: unknown) => Answered | undefined }>(
  options: Options,
): Options & { readonly answerOf: (error: unknown) => Answered | undefined } {
  return {
    ...options,
    answerOf: (error) =>
      error instanceof RefusedBefore ? undefined : (options.answerOf?.(error) ?? exceptionOf(error)),
  }
}
