// Job queues on PostgreSQL, which people use as outboxes: each in the batches that its documentation recommends for
// speed. They need a newer Node.

import { readFileSync } from 'node:fs'
import { batch, placed, publisher } from './messaging-work.mjs'

const [major, minor] = process.versions.node.split('.').map(Number)
const runsHere = major > 22 || (major === 22 && minor >= 18)
const folder = new URL('./newest/', import.meta.url)
const graphile = 'graphile-worker, batched, no order'
const boss = 'pg-boss, batched, no order'

/** What ran, for the head of the report. @type {Record<string, string>} */
export const versions = runsHere
  ? Object.fromEntries(
      ['graphile-worker', 'pg-boss'].map((name) => {
        const manifest = new URL(`./node_modules/${name}/package.json`, folder)
        return [name, JSON.parse(readFileSync(manifest, 'utf8')).version]
      }),
    )
  : {}

/**
 * @param {import('pg').Pool} pool
 * @param {string} url
 */
export async function queuesOn(pool, url) {
  if (!runsHere) {
    const why = `not run: it needs Node 22.18, and this is ${process.versions.node} (--node 24)`
    const notes = [graphile, boss].map((name) => `${name}: ${why}`)
    return { subjects: [], targets: [], notes, dispose: async () => {} }
  }
  const { graphileWorker, PgBoss } = await import('./newest/queues.mjs')
  const worker = await graphileOn(pool, graphileWorker)
  const queue = await bossOn(url, PgBoss)
  return {
    subjects: [
      { name: graphile, turn: worker.turn },
      { name: boss, turn: queue.turn },
    ],
    targets: [
      { against: graphile, limit: 1.5 },
      { against: boss, limit: 3 },
    ],
    notes: [],
    dispose: async () => {
      await worker.dispose()
      await queue.dispose()
    },
  }
}

/**
 * From the start of its first job to that of the last, with as many fetched at a time as others publish together.
 * @param {import('pg').Pool} pool
 * @param {typeof import('./newest/queues.mjs')['graphileWorker']} library
 */
async function graphileOn(pool, library) {
  const { to } = publisher()
  const utils = await library.makeWorkerUtils({ pgPool: pool })
  await utils.migrate()
  const preset = { worker: { localQueue: { size: batch }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } }
  const logger = new library.Logger(() => () => undefined)
  return {
    turn: async (/** @type {number} */ count) => {
      const whole = Math.max(count, batch)
      await utils.addJobs(Array.from({ length: whole }, () => ({ identifier: 'publish', payload: placed })))
      let started = 0
      let start = 0n
      const seen = Promise.withResolvers()
      const publish = async (/** @type {unknown} */ data, /** @type {any} */ { job }) => {
        if (started === 0) start = process.hrtime.bigint()
        started += 1
        await to.publish([{ id: job.id, type: job.task_identifier, at: job.created_at, data }])
        if (started === whole) seen.resolve(process.hrtime.bigint())
      }
      const options = { pgPool: pool, concurrency: 24, noHandleSignals: true, taskList: { publish }, preset, logger }
      const running = await library.run(options)
      const end = await seen.promise
      await running.stop()
      return (Number(end - start) * count) / whole
    },
    dispose: async () => utils.release(),
  }
}

/**
 * Four loops that fetch, publish and complete.
 * @param {string} url
 * @param {typeof import('./newest/queues.mjs')['PgBoss']} PgBoss
 */
async function bossOn(url, PgBoss) {
  const { to } = publisher()
  const queue = new PgBoss({ connectionString: url, max: 4, supervise: false, schedule: false })
  await queue.start()
  await queue.createQueue('publish')
  const loop = async () => {
    for (;;) {
      const jobs = await queue.fetch('publish', { batchSize: batch })
      if (jobs.length === 0) return
      await to.publish(jobs)
      await queue.complete(
        'publish',
        jobs.map(({ id }) => id),
      )
    }
  }
  return {
    turn: async (/** @type {number} */ count) => {
      const whole = Math.max(count, batch)
      await queue.insert(
        'publish',
        Array.from({ length: whole }, () => ({ data: placed })),
      )
      const start = process.hrtime.bigint()
      await Promise.all(Array.from({ length: 4 }, loop))
      return (Number(process.hrtime.bigint() - start) * count) / whole
    },
    dispose: async () => queue.stop({ graceful: false }),
  }
}
