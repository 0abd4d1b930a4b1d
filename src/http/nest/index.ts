// Repeatable routes for Nest 11 on Express: decorators for methods of controllers, an interceptor behind each, and the store by injection.

import type { ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { CallHandler, DynamicModule, ExecutionContext, NestInterceptor } from '@nestjs/common'
import type { Request } from 'express'
import type { Observable } from 'rxjs'
import type { RecordStore } from '../../idempotency/index.js'
import {
  type Answered,
  type AtomicHandlerCall,
  type AtomicRouteOptions,
  answerOf,
  atomicRoute,
  type HandlerCall,
  type LeasedHandlerCall,
  type LeasedRouteOptions,
  leasedRoute,
  type Route,
  type RouteDomain,
  reply,
} from '../core/index.js'
import { nodeFacts, sendToNode } from '../wire/index.js'

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
 * Makes a method of a controller a route in the domain: it runs inside the transaction that {@link Tx} gives it, and what it returns leaves after COMMIT and is replayed to
 * repeats. It returns what it always does, with the status that Nest has for it, or what `reply(…)` makes. An `HttpException` below 500 is an answer; any other error goes to
 * the exception filters. Guards run before, on every request. Wrong options are refused when the application starts, like by {@link atomicRoute}.
 */
export function Idempotent<Input = undefined>(options: AtomicRouteOptions<Request, Input>): MethodDecorator {
  return routed((store, runs) =>
    atomicRoute<Request, unknown, Input>(store as RouteDomain<unknown>, withExceptions(options), (call) =>
      runs.run(call),
    ),
  )
}

/** Makes a method of a controller a route whose effect lies outside the store, under the lease that {@link Call} gives it. Otherwise as {@link Idempotent}. */
export function IdempotentLeased<Input = undefined>(options: LeasedRouteOptions<Request, Input>): MethodDecorator {
  return routed((store, runs) =>
    leasedRoute<Request, Input>(store as RecordStore, withExceptions(options), (call) => runs.run(call)),
  )
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

// Found when the first decorator is used, so that the door opens where Nest is not installed.
const load = createRequire(import.meta.url)
const nest = (): typeof import('@nestjs/common') => load('@nestjs/common')
const rxjs = (): typeof import('rxjs') => load('rxjs')

// The call of the run that is under way, for the decorators of parameters.
const calls = new WeakMap<Request, HandlerCall<Request, unknown>>()

interface Runs {
  run(call: HandlerCall<Request, unknown>): Promise<Answered>
}

type Define = (store: unknown, runs: Runs) => Route<Request>

const advice =
  'Create the application with { rawBody: true }, or with { bodyParser: false } where no other route needs a parser.'

function routed(define: Define): MethodDecorator {
  // One class for each route, so that Nest makes it, and the route is checked, when the application starts.
  class RouteInterceptor implements NestInterceptor {
    readonly #route: Route<Request>
    readonly #next = new WeakMap<Request, () => Promise<unknown>>()

    constructor(store: unknown) {
      this.#route = define(store, { run: (call) => this.#run(call) })
    }

    intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
      const http = context.switchToHttp()
      const request = http.getRequest<Request>()
      this.#next.set(request, () => rxjs().lastValueFrom(next.handle(), { defaultValue: undefined }))
      return rxjs().from(this.#answer(request, http.getResponse<ServerResponse>()))
    }

    async #answer(request: Request, response: ServerResponse): Promise<void> {
      const { originalUrl: target, params } = request
      await sendToNode(response, await this.#route.handle(nodeFacts(request, { target, params, advice }), request))
    }

    async #run(call: HandlerCall<Request, unknown>): Promise<Answered> {
      calls.set(call.native, call)
      const returned = await this.#next.get(call.native)?.()
      return isAnswered(returned) ? returned : reply(call.native.res?.statusCode ?? 200, returned)
    }
  }
  const { applyDecorators, Inject, Injectable, Res, UseInterceptors } = nest()
  Injectable()(RouteInterceptor)
  Inject(repriseStore)(RouteInterceptor, undefined, 0)
  return applyDecorators(UseInterceptors(RouteInterceptor), (target: object, name: string | symbol) => {
    // Tells Nest, in its own words, that the answer is sent by the route: status and bytes are the stored ones.
    Res()(target, name, argumentsOf(target, name))
  })
}

// The place behind all parameters that are given something.
function argumentsOf(target: object, name: string | symbol): number {
  const given = Reflect.getMetadata('__routeArguments__', target.constructor, name) as unknown
  const places = Object.values(Object(given) as Record<string, { readonly index: number }>)
  const method = Object(target)[name] as { readonly length: number }
  return Math.max(method.length, ...places.map(({ index }) => index + 1))
}

function isAnswered(value: unknown): value is Answered {
  try {
    answerOf(value as Answered)
    return true
  } catch {
    return false
  }
}

function withExceptions<Options extends { readonly answerOf?: (error: unknown) => Answered | undefined }>(
  options: Options,
): Options & { readonly answerOf: (error: unknown) => Answered | undefined } {
  return {
    ...options,
    answerOf: (error) => options.answerOf?.(error) ?? exceptionOf(error),
  }
}

// By its shape, as there may be two copies of Nest.
function exceptionOf(error: unknown): Answered | undefined {
  const exception = Object(error) as { getStatus?(): number; getResponse?(): string | object }
  if (typeof exception.getStatus !== 'function' || typeof exception.getResponse !== 'function') return undefined
  const [statusCode, body] = [exception.getStatus(), exception.getResponse()]
  if (statusCode >= 500) return undefined
  return reply(statusCode, typeof body === 'string' ? { statusCode, message: body } : body)
}
