// The routes of the subject whose effect is in the ledger: each one a way in which an answer can be.

import { randomUUID } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import {
  type Answer,
  type AtomicRouteOptions,
  checkPreconditions,
  entityTag,
  reply,
} from '../../../src/http/core/index.js'
import { type Charge, type ChargeCall, charged, effect, firstTimes, parseAny, parseCharge, slowly } from './charge.js'
import type { SubjectTransaction } from './ledger.js'

/** What a handler gets. */
interface AtomicChargeCall extends ChargeCall {
  readonly tx: SubjectTransaction
}

/** A route. Its principal is added where it is mounted. */
export interface AtomicSubjectRoute {
  readonly method: 'POST' | 'PUT'
  /** With parameters as `:name`. */
  readonly path: string
  readonly options: Omit<AtomicRouteOptions<unknown, Charge>, 'principal' | 'trusts'>
  readonly handle: (told: AtomicChargeCall) => Promise<Answer>
}

type Options = Partial<AtomicSubjectRoute['options']>

const text = new TextEncoder()

async function* inParts(id: string): AsyncGenerator<Uint8Array> {
  for (const part of ['{"id":"', id, '"}']) yield text.encode(part)
}

/** All of them. */
export function atomicRoutes(): readonly AtomicSubjectRoute[] {
  return [...chargingRoutes(), ...failingRoutes(firstTimes()), ...oddAnswers()]
}

function on(
  method: 'POST' | 'PUT',
  path: string,
  handle: AtomicSubjectRoute['handle'],
  options: Options = {},
): AtomicSubjectRoute {
  const name = `${method.toLowerCase()}${path.replaceAll(':', '')}`
  const usual = { name, parse: parseCharge, fields: { omit: ['/clientTimestamp'] } } as const
  return { method, path, options: { ...usual, ...options }, handle }
}

async function charge(told: AtomicChargeCall): Promise<Answer> {
  await slowly(told)
  return charged(await effect(told.tx, told), told.input.amount)
}

function chargingRoutes(): readonly AtomicSubjectRoute[] {
  return [
    on('POST', '/charges', charge),
    on('POST', '/charges/:account', charge),
    on('PUT', '/charges/:account', charge),
    on('POST', '/optional', charge, { required: false }),
    on('POST', '/strict', charge, { key: { minLength: 16 } }),
    on('POST', '/slow', charge),
    on('POST', '/waiting', charge, { duplicates: 'wait', wait: '2s' }),
    on('PUT', '/versions/:id', putVersion, { parse: parseAny, required: false }),
    on('POST', '/echo', echo, { parse: parseAny, required: false }),
  ]
}

function failingRoutes(isFirst: ReturnType<typeof firstTimes>): readonly AtomicSubjectRoute[] {
  const refused = (status: number) => async (): Promise<Answer> => reply(status, { reason: 'no', id: randomUUID() })
  return [
    on('POST', '/fail500', async (told) => (isFirst('fail500', told) ? reply(500, { reason: 'down' }) : charge(told))),
    on('POST', '/limited', async (told) => (isFirst('limited', told) ? reply(429, null) : charge(told))),
    on('POST', '/throw-after-effect', async (told) => {
      const answer = await charge(told)
      if (isFirst('throw-after-effect', told)) throw new Error('after the effect')
      return answer
    }),
    on('POST', '/fail422', refused(422)),
    on('POST', '/fail402', refused(402)),
  ]
}

function oddAnswers(): readonly AtomicSubjectRoute[] {
  const answers: Readonly<Record<string, (id: string, told: AtomicChargeCall) => Answer>> = {
    '/redirect303': (id) => reply(303, null, { location: `/charges/${id}` }),
    '/empty204': () => reply(204),
    '/empty201': (id) => reply(201, null, { location: `/charges/${id}` }),
    '/binary': () => reply(200, Uint8Array.of(0xff, 0xfe, 0x00, 0x01, 0x80)),
    '/stream': (id) => reply(200, inParts(id), { 'content-type': 'application/json' }),
    '/setcookie': (id, { input }) => charged(id, input.amount, { 'set-cookie': ['session=1; HttpOnly', 'theme=dark'] }),
    '/large': (id, { input }) => reply(200, id.padEnd(input.bytes, '.')),
    '/gzip': (id) => {
      const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
      return reply(200, gzipSync(JSON.stringify({ id })), headers)
    },
    '/multipart': (id) => charged(id, 0),
  }
  return Object.entries(answers).map(([path, answer]) => {
    const handle = async (told: AtomicChargeCall): Promise<Answer> => answer(await effect(told.tx, told), told)
    return on('POST', path, handle, path === '/multipart' ? { parse: parseAny } : {})
  })
}

async function echo({ tx, callerAttempt }: AtomicChargeCall): Promise<Answer> {
  const deadlineMs = Math.round(tx.deadline.expiresAtMs - performance.now())
  return reply(200, { attempt: callerAttempt ?? null, deadlineMs })
}

async function putVersion({ tx, input, principal }: AtomicChargeCall): Promise<Answer> {
  const id = `${principal[0]} ${input.request.params['id']}`
  const row = await tx.readRow('subject_versions', { id })
  const version = row === undefined ? undefined : Number(row['version'])
  const refusal = checkPreconditions(input.request, { etag: version === undefined ? undefined : entityTag(version) })
  if (refusal !== undefined) return refusal
  const next = (version ?? 0) + 1
  if (version === undefined) await tx.insertOnce('subject_versions', { id, version: next }, ['id'])
  else await tx.updateRows('subject_versions', { id, version }, { version: next })
  return reply(version === undefined ? 201 : 200, { version: next }, { etag: entityTag(next) })
}
