// A world for routes in virtual time: a store in memory with a table of effects, requests made of plain data, answers
// as text, and the events that were told.

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import {
  type Answer,
  type AtomicHandler,
  type AtomicRouteOptions,
  atomicRoute,
  type RequestFacts,
  type Route,
} from '../../src/http/core/index.js'
import { mintKey } from '../../src/identity/index.js'
import { eventLoopTurn } from '../../src/kernel/index.js'
import { type MemoryDomain, type MemoryOptions, type MemoryTransaction, memory } from '../../src/stores/memory/index.js'
import type { HttpAnsweredEvent } from '../../src/telemetry/index.js'
import { type ManualClock, manualClock } from '../../src/testing/index.js'

/** A request before it is one. */
export interface Sent {
  readonly method?: string
  readonly target?: string
  readonly key?: string | readonly string[] | undefined
  readonly type?: string
  readonly body?: string | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
  readonly user?: string | undefined
}

/** The request of the framework that these tests pretend to be. */
export interface Native {
  readonly user: string | undefined
}

/** An answer that was read to its end. */
export interface Got {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: Uint8Array
  readonly text: string
  readonly problem: string | undefined
}

/** The facts of a request. */
export function factsOf({
  method = 'POST',
  target = '/charges',
  key,
  type,
  body = '',
  headers = {},
}: Sent): RequestFacts {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  const fields: Record<string, readonly string[]> = {}
  for (const [name, value] of Object.entries(headers)) fields[name] = [value]
  if (type !== undefined) fields['content-type'] = [type]
  if (key !== undefined) fields['idempotency-key'] = typeof key === 'string' ? [key] : key
  return { method, target, fields, readBody: async () => bytes }
}

/** Reads an answer to its end. */
export async function read({ status, headers, body }: Answer): Promise<Got> {
  const parts: Uint8Array[] = []
  if (body === null || typeof body === 'string' || body instanceof Uint8Array)
    parts.push(Buffer.from((body ?? '') as string))
  else for await (const part of body) parts.push(Buffer.from(part as string))
  const bytes = Buffer.concat(parts)
  const text = bytes.toString()
  const fields = Object.fromEntries(headers)
  const isProblem = fields['content-type'] === 'application/problem+json'
  const problem = isProblem ? (JSON.parse(text) as { type: string }).type.replace(/^.*[:/]/, '') : undefined
  return { status, headers: fields, bytes, text, problem }
}

/** Sends a request to a route, as user `ada` with a fresh key and a JSON body unless told otherwise. */
export async function send(route: Route<Native>, sent: Sent = {}): Promise<Got> {
  const whole = { key: mintKey() as string, type: 'application/json', body: '{"amount":1}', user: 'ada', ...sent }
  return read(await route.handle(factsOf(whole), { user: whole.user }))
}

/** What routes are told in these tests. */
export const usual = { name: 'charges', principal: ({ user }: Native) => user } as const

export interface RouteWorld {
  readonly clock: ManualClock
  readonly db: MemoryDomain
  /** How many effects are committed. */
  effects(): number
  /** A route in the store; the handler counts an effect and gives `201`, unless it is told otherwise. */
  route<Input = undefined>(
    options?: Partial<AtomicRouteOptions<Native, Input>>,
    handler?: AtomicHandler<Native, MemoryTransaction, Input>,
  ): Route<Native>
}

/** A fresh store, and routes in it. */
export function routeWorld(more: Pick<MemoryOptions, 'pepper' | 'drill'> = {}): RouteWorld {
  const clock = manualClock({ wallMs: 1_750_000_000_000 })
  const db = memory({ name: 'shop', clock, ...more })
  db.table('effects', { unique: [['id']] })
  return {
    clock,
    db,
    effects: () => db.rows('effects').length,
    route: (options, handler) =>
      atomicRoute(
        db,
        { ...usual, ...options },
        handler ??
          (async ({ tx }) => {
            const id = await effect(tx)
            return new Response(JSON.stringify({ id }), {
              status: 201,
              headers: { 'content-type': 'application/json', location: `/charges/${id}` },
            })
          }),
      ),
  }
}

/** Leaves a trace in the store. */
export async function effect(tx: MemoryTransaction): Promise<string> {
  const id = mintKey()
  await tx.insertOnce('effects', { id }, ['id'])
  return id
}

/** Listens to what routes tell until `end`. */
export function listening(): { readonly events: HttpAnsweredEvent[]; end(): void } {
  const events: HttpAnsweredEvent[] = []
  const hear = (event: unknown): void => {
    events.push(event as HttpAnsweredEvent)
  }
  subscribe('reprise.http.answered', hear)
  return { events, end: () => unsubscribe('reprise.http.answered', hear) }
}

/** Lets time pass until the promise is settled. */
export async function settledInTime<Value>(clock: ManualClock, promise: Promise<Value>, stepMs = 10): Promise<Value> {
  let settled = false
  const over = (): void => {
    settled = true
  }
  promise.then(over, over)
  while (!settled) {
    await eventLoopTurn()
    await clock.advance(stepMs)
  }
  return promise
}
