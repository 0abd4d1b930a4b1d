// Operations in memory against the idempotency libraries that have a store in memory, or take one.

import assert from 'node:assert/strict'
import {
  IdempotencyConfig,
  IdempotencyItemAlreadyExistsError,
  IdempotencyItemNotFoundError,
  makeIdempotent,
} from '@aws-lambda-powertools/idempotency'
import { BasePersistenceLayer } from '@aws-lambda-powertools/idempotency/persistence'
import { Idempotency } from '@node-idempotency/core'
import { MemoryStorageAdapter } from '@node-idempotency/storage-adapter-memory'
import { memory } from '../dist/stores/memory/index.js'
import { fresh, here, request, response, rotating, sharedOptions } from './operation-work.mjs'
import { ownProcessorUs } from './processor-time.mjs'

const ours = 'operation'
const nodeIdempotency = '@node-idempotency/core'
const powertools = 'Powertools, the whole event is the key'
const powertoolsCompared = 'Powertools, key and content compared'
const effort = { rounds: 41, turnMs: 40, warmUpMs: 2000, warmUpCalls: 5000 }

/** First calls and replays, each side by side. */
export async function* memoryCases() {
  const bytes = (/** @type {unknown} */ value) => `${JSON.stringify(value).length} bytes`
  const sizes = `request of ${bytes(request(1))}, response of ${bytes(response)}`
  const limit = [
    'limit: the processor time of this thread: two SHA-256 (the name, the content), the canonical JSON of both sides, the promises of a',
    '  transaction; the others have no transaction: a crash or an error between their two writes leaves the key taken',
  ]
  for (const [kind, make, again] of /** @type {const} */ ([
    ['first call', firstCalls, false],
    ['replay', replays, true],
  ])) {
    const ways = await make()
    await check(ways, again)
    yield {
      name: `${kind}, in memory, ${sizes}`,
      subjects: Object.entries(ways).map(([name, run]) => ({ name, run, waits: true })),
      // As many first calls as node-idempotency, and a fifth more replays.
      targets: [
        { against: nodeIdempotency, limit: again ? 1 / 1.2 : 1 },
        ...[powertools, powertoolsCompared].map((against) => ({ against, limit: 0.5 })),
      ],
      meters: [{ name: here, read: ownProcessorUs }],
      effort,
      notes: limit,
    }
  }
}

let executed = 0
const work = async () => {
  executed += 1
  return response
}

/** @returns {Promise<Record<string, () => Promise<unknown>>>} */
async function firstCalls() {
  const subjects = all()
  return Object.fromEntries(
    Object.entries(subjects).map(([name, call]) => {
      const next = fresh()
      return [name, () => call(next())]
    }),
  )
}

/** @returns {Promise<Record<string, () => Promise<unknown>>>} */
async function replays() {
  const subjects = all()
  /** @type {Record<string, () => Promise<unknown>>} */
  const ways = {}
  for (const [name, call] of Object.entries(subjects)) {
    const { requests, next } = rotating()
    for (const one of requests) await call(one)
    ways[name] = () => call(next())
  }
  return ways
}

/** @returns {Record<string, (input: ReturnType<typeof request>) => Promise<unknown>>} */
function all() {
  const db = memory({ name: 'bench' })
  const pay = db.operation('pay', { ...sharedOptions(), run: work })
  const idempotency = new Idempotency(new MemoryStorageAdapter())
  return {
    [ours]: pay,
    [nodeIdempotency]: async (body) => {
      const message = { headers: { 'idempotency-key': body.key }, path: '/payments', method: 'POST', body }
      const known = await idempotency.onRequest(message)
      if (known !== undefined) return known.body
      const answer = await work()
      await idempotency.onResponse(message, { body: answer })
      return answer
    },
    [powertools]: inPowertools({}),
    [powertoolsCompared]: inPowertools({ eventKeyJmesPath: 'key', payloadValidationJmesPath: '@' }),
  }
}

/** @param {object} options */
function inPowertools(options) {
  const config = new IdempotencyConfig({ ...options, expiresAfterSeconds: 86_400 })
  // Without a context it warns at each call.
  config.registerLambdaContext(/** @type {any} */ ({ getRemainingTimeInMillis: () => 10_000 }))
  return makeIdempotent(work, { persistenceStore: new InMemory(), config })
}

// As little as a layer can do: objects in a map, neither copied nor made into text.
class InMemory extends BasePersistenceLayer {
  /** @type {Map<string, any>} */
  #records = new Map()

  /** @param {any} record */
  async _putRecord(record) {
    const there = this.#records.get(record.idempotencyKey)
    if (there !== undefined && !there.isExpired()) {
      throw new IdempotencyItemAlreadyExistsError('The key is taken.', there)
    }
    this.#records.set(record.idempotencyKey, record)
  }

  /** @param {any} record */
  async _updateRecord(record) {
    this.#records.set(record.idempotencyKey, record)
  }

  /** @param {string} key */
  async _getRecord(key) {
    const there = this.#records.get(key)
    if (there === undefined) throw new IdempotencyItemNotFoundError()
    return there
  }

  /** @param {any} record */
  async _deleteRecord(record) {
    this.#records.delete(record.idempotencyKey)
  }
}

/**
 * @param {Record<string, () => Promise<unknown>>} ways
 * @param {boolean} again Whether the work was done before.
 */
async function check(ways, again) {
  for (const [name, run] of Object.entries(ways)) {
    const before = executed
    assert.deepEqual(await run(), response, name)
    assert.equal(executed - before, again ? 0 : 1, name)
  }
}
