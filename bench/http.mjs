// What a repeatable POST costs a service: against the same handler and transaction without the layer, and against other
// libraries.
//
// Each subject is a process of its own, and takes its turns under the load of autocannon in this one. On two processors
// the load, the service and PostgreSQL get in each other's way, so the processor time of an answer is told beside the
// rate.

import assert from 'node:assert/strict'
import { withDisk } from './disk.mjs'
import { loadOf, post, startService } from './http-load.mjs'
import { peersFor, versionsHere } from './http-peers.mjs'
import { connections, preparePostgres } from './http-stores.mjs'
import { repeated, response } from './operation-work.mjs'
import { startPostgres } from './postgres-server.mjs'
import { processorUs } from './processor-time.mjs'

/** @typedef {import('./http-load.mjs').Place} Place */
/** @typedef {import('./harness.mjs').Used} Used */

export const peers = ['autocannon', 'express', 'fastify', 'hono', '@hono/node-server', 'pg', 'libsql']
export const versions = versionsHere()

const transact = 'db.transact in the handler, no layer'
const bare = 'the driver in the handler, no layer'
const byHand = 'key, effect and outcome by hand, no layer'
const wrapper = 'keyed POST, handler returns its answer'
const ways = { [bare]: 'bare', [byHand]: 'by-hand', [transact]: 'transact' }
/** What is asked of a POST with a key. */
const keyedLimits = {
  sqlite: { [bare]: 1.5, [byHand]: 2 },
  postgres: { [bare]: 0.6, [byHand]: 1.1 },
  memory: {},
}
const service = 'processor time of the service in us'
const database = 'processor time of PostgreSQL in us'
const effort = { rounds: 21, turnMs: 250, warmUpMs: 1000 }
const warmUpRequests = 6000
/** A short run starts as many services, and asks each of them for little more than one request on each connection. */
const shortEffort = { rounds: 1, turnMs: 1, warmUpMs: 0 }
const repeatedInShort = connections
let smoke = false
const frameworks = /** @type {const} */ (['node', 'express', 'fastify'])
const titles = { node: 'node:http', express: 'Express', fastify: 'Fastify', hono: 'Hono' }

/**
 * The cases of this bench, each after a check that all its subjects do what their names say.
 * @param {{ smoke: boolean }} options
 */
export async function* cases(options) {
  smoke = options.smoke
  yield* withDisk(async function* (folder, flushes) {
    for (const framework of frameworks) {
      yield* storeCases({ framework, store: 'sqlite', folder }, 'SQLite (libsql), WAL, synchronous FULL', flushes)
    }
    const server = await startPostgres()
    try {
      await preparePostgres(server.url)
      for (const framework of frameworks) {
        const place = /** @type {const} */ ({ framework, store: 'postgres', folder, url: server.url })
        yield* storeCases(place, `PostgreSQL ${server.version}, fsync on`, flushes)
      }
    } finally {
      await server.dispose()
    }
    for (const framework of /** @type {const} */ ([...frameworks, 'hono'])) {
      yield* peerCases({ framework, store: 'memory', folder }, 'in memory, nothing is written')
    }
  })
}

/**
 * @param {Place} place
 * @param {string} text
 * @param {import('./harness.mjs').Subject} flushes
 */
async function* storeCases(place, text, flushes) {
  const where = `${titles[place.framework]}, ${text}, ${connections} connections`
  const { here, missing } = peersFor(place.framework, place.store)
  yield* caseOf({
    name: `keyed POST, ${where}`,
    place,
    kind: { keyed: true },
    ours: ['keyed POST', 'keyed'],
    others: { ...ways, ...byName(here) },
    targets: [
      ...Object.entries(keyedLimits[place.store]).map(([against, limit]) => ({ against, limit })),
      ...fasterThan(here),
    ],
    notes: missing,
    flushes,
  })
  yield* caseOf({
    name: `POST without a key, ${where}`,
    place,
    kind: { keyed: false },
    ours: ['POST without a key under the layer', 'keyless'],
    others: { [bare]: ways[bare], [transact]: ways[transact] },
    targets: [{ against: bare, limit: 1 }],
  })
  if (place.framework !== 'node') {
    yield* caseOf({
      name: `handler that exists, ${where}`,
      place,
      kind: { keyed: true },
      ours: ['keyed POST, handler behind idempotency()', 'drop-in'],
      others: { [wrapper]: 'keyed' },
      // On SQLite the other form shares the flush of its commit with those that wait, and this one cannot.
      targets: place.store === 'sqlite' ? [] : [{ against: wrapper, limit: 0.9 }],
      flushes,
    })
  }
  yield* replayCase(place, where, here)
}

/**
 * @param {Place} place
 * @param {string} text
 */
async function* peerCases(place, text) {
  const where = `${titles[place.framework]}, ${text}, ${connections} connections`
  const { here, missing } = peersFor(place.framework, place.store)
  yield* caseOf({
    name: `keyed POST, ${where}`,
    place,
    kind: { keyed: true },
    ours: ['keyed POST', 'keyed'],
    others: { ...byName(here), 'no layer, no transaction': 'bare' },
    targets: fasterThan(here),
    notes: missing,
  })
  yield* replayCase(place, where, here)
}

/**
 * @param {Place} place
 * @param {string} where
 * @param {string[]} here
 */
async function* replayCase(place, where, here) {
  if (here.length === 0) return
  yield* caseOf({
    name: `replay, ${where}`,
    place,
    kind: { keyed: true, repeated: smoke ? repeatedInShort : repeated },
    ours: ['replay', 'keyed'],
    others: byName(here),
    targets: fasterThan(here),
  })
}

const byName = (/** @type {string[]} */ names) => Object.fromEntries(names.map((name) => [name, name]))
const fasterThan = (/** @type {string[]} */ names) => names.map((against) => ({ against, limit: 1 }))

/**
 * Starts the services of a case, and stops them when it was measured.
 * @param {object} options
 * @param {string} options.name
 * @param {Place} options.place
 * @param {import('./http-load.mjs').Kind} options.kind
 * @param {[name: string, way: string]} options.ours
 * @param {Record<string, string>} options.others Ways by name.
 * @param {import('./harness.mjs').Target[]} options.targets
 * @param {string[]} [options.notes]
 * @param {import('./harness.mjs').Subject} [options.flushes]
 */
async function* caseOf({ name, place, kind, ours, others, targets, notes = [], flushes }) {
  /** @type {import('./http-load.mjs').Service[]} */
  const started = []
  try {
    const subjects = []
    const wanted = [ours, ...Object.entries(others)]
    const starting = wanted.map(async ([, way]) => started.push(await startService({ ...place, way })))
    await Promise.all(starting)
    for (const [subject, way] of wanted) {
      const one = started.find((service) => service.way === way)
      assert.ok(one)
      await check(one, kind.keyed, way, `${name}: ${subject}`)
      subjects.push({ name: subject, turn: loadOf(one.url, kind), atOnce: connections })
      // Enough for the compiler, and at the pace of the processor: at that of the disk it would take minutes. What is
      // repeated is done here, too.
      await one.flush('OFF')
      await subjects.at(-1)?.turn(smoke ? repeatedInShort * 2 : warmUpRequests)
      await one.flush('FULL')
    }
    const pids = started.flatMap((one) => one.pids)
    const backends = started.flatMap((one) => one.backends)
    yield {
      name,
      rates: true,
      subjects: [...subjects, ...(flushes === undefined ? [] : [{ ...flushes }])],
      targets,
      effort,
      shortEffort,
      meters: [
        { name: service, read: () => processorUs(pids) },
        ...(backends.length > 0 ? [{ name: database, read: () => processorUs(backends) }] : []),
      ],
      notes: (/** @type {Used} */ used) => [
        ...byProcessor(used, ours[0], Object.keys(others), backends.length > 0),
        ...notes,
      ],
    }
  } finally {
    await Promise.all(started.map((one) => one.stop()))
  }
}

/**
 * The same ratios by processor time, of service and database together: what a busy machine cannot take away.
 * @param {Used} used
 * @param {string} ours
 * @param {string[]} others
 * @param {boolean} both
 */
function byProcessor(used, ours, others, both) {
  const of = (/** @type {string} */ name) => used(name, service) + (both ? used(name, database) : 0)
  return others.map((name) => `by processor time: ${(of(name) / of(ours)).toFixed(2)} x as many as ${name}`)
}

/**
 * Each service makes a payment when it is asked, and a second one when it is asked again, unless a key and a layer keep
 * it from that.
 * @param {import('./http-load.mjs').Service} one
 * @param {boolean} keyed
 * @param {string} way
 * @param {string} name
 */
async function check(one, keyed, way, name) {
  const layered = way !== 'transact' && way !== 'bare'
  const before = await one.effects()
  const key = keyed ? `check-of-${process.hrtime.bigint().toString().padStart(20, '0')}` : undefined
  for (let time = 0; time < 2; time++) {
    const answer = await post(one.url, key)
    assert.equal(answer.status, 201, name)
    assert.deepEqual(answer.body, response, name)
    // Some of the others store an answer after it was sent.
    if (!['keyed', 'keyless', 'by-hand', 'bare', 'transact'].includes(way))
      await new Promise((resolve) => setTimeout(resolve, 50))
  }
  assert.equal((await one.effects()) - before, keyed && layered ? 1 : 2, name)
}
