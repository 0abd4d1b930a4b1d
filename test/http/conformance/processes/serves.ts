// Serves the subject in a process that a test holds in its hands: with faults armed, options changed, and every event
// written down.

import { subscribe } from 'node:diagnostics_channel'
import { inspect } from 'node:util'
import type { Answer, AnswerJson } from '../../../../src/http/core/index.js'
import { encrypted } from '../../../../src/idempotency/index.js'
import * as telemetry from '../../../../src/telemetry/index.js'
import { armFromEnvironment } from '../../../../src/testing/index.js'
import { atomicRoutes } from '../../subject/atomic-routes.js'
import { leasedRoutes } from '../../subject/leased-routes.js'
import { openLedger } from '../../subject/ledger.js'
import { openSink } from '../../subject/sink.js'
import { type AdapterName, serveBy } from '../../subject/subject.js'

/** What such a process is told. */
export interface ServeArguments {
  /** What serves it. */
  readonly adapter: AdapterName
  /** `sqlite:<file>` or `postgres://…`. */
  readonly database: string
  /** The folder of the sink. */
  readonly sink: string
  /** How long answers are remembered. Default: as the routes say. */
  readonly window?: string
  /** Keys that say to be older are refused. Default: none is. */
  readonly oldestKey?: string
  /** How long a request may take. Default: as the domain says. */
  readonly deadline?: string
  /** How long one run of a handler may take. Default: as the domain says. */
  readonly bodyLimit?: string
  /** How long a lease lasts. Default: as the routes say. */
  readonly lease?: string
  /** Whether answers are stored encrypted. */
  readonly encrypts?: boolean
}

// Answers say by a field that is replayed in which process they were made.
function signed<Call>(handle: (call: Call) => Promise<Answer>): (call: Call) => Promise<Answer> {
  return async (call) => {
    const answer = await handle(call)
    return { ...answer, headers: [...answer.headers, ['content-language', `x-${process.pid}`]] }
  }
}

async function main(): Promise<void> {
  armFromEnvironment()
  const told = JSON.parse(process.argv[2] ?? '{}') as ServeArguments
  for (const channel of Object.values(telemetry)) {
    if (typeof channel !== 'object' || !('name' in channel)) continue
    subscribe(channel.name, (message) => {
      process.stderr.write(`event ${channel.name} ${inspect(message, { depth: 12, breakLength: Infinity })}\n`)
    })
  }
  const { adapter, database, window, oldestKey, deadline } = told
  const codec = encrypted<AnswerJson>({ keys: { k1: new Uint8Array(32).fill(7) }, current: 'k1' })
  const more = {
    ...(window === undefined ? {} : { window }),
    ...(oldestKey === undefined ? {} : { oldestKey }),
    ...(deadline === undefined ? {} : { deadline }),
    ...(told.encrypts === true ? { codec } : {}),
  } as object
  const [serve, ledger] = await Promise.all([serveBy(adapter), openLedger(database, told)])
  const sink = openSink(told.sink)
  const { url } = await serve({
    db: ledger.db,
    atomic: atomicRoutes().map((route) => ({
      ...route,
      options: { ...route.options, ...more },
      handle: signed(route.handle),
    })),
    leased: leasedRoutes(sink).map((route) => ({
      ...route,
      options: { ...route.options, ...more, ...(told.lease === undefined ? {} : { lease: told.lease as '1s' }) },
      handle: signed(route.handle),
    })),
    effects: async (user) => (await ledger.effects(user)) + sink.count(user),
  })
  console.log(`ready ${url}`)
  // Whoever started it may be killed; then nobody is left to stop it.
  process.stdin.resume().on('end', () => process.exit(0))
}

void main()
