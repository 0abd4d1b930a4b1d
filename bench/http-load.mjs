// The load of the bench of servers: autocannon in this process, each subject in a process of its own.

import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import autocannon from 'autocannon'
import { connections } from './http-stores.mjs'
import { request } from './operation-work.mjs'

/**
 * @typedef {object} Place
 * @property {'node' | 'express' | 'fastify' | 'hono'} framework
 * @property {'memory' | 'sqlite' | 'postgres'} store
 * @property {string} folder For files of SQLite.
 * @property {string} [url] Of PostgreSQL.
 */
/**
 * @typedef {object} Service A service in a process of its own.
 * @property {string} url
 * @property {string} way How it answers.
 * @property {number[]} pids Of the service.
 * @property {number[]} backends Of its connections to PostgreSQL.
 * @property {() => Promise<number>} effects How many rows it has written.
 * @property {(synchronous: 'OFF' | 'FULL') => Promise<unknown>} flush Whether commits of SQLite wait for the disk.
 * @property {() => Promise<void>} stop
 */

/**
 * Starts a service. Whoever starts one stops it.
 * @param {Place & { way: string }} options
 * @returns {Promise<Service>}
 */
export async function startService(options) {
  const child = fork(new URL('./http-service.mjs', import.meta.url), [JSON.stringify(options)], {
    env: { ...process.env, NODE_ENV: 'production' },
  })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  const answer = (/** @type {string} */ question) =>
    new Promise((resolve, reject) => {
      const onExit = () => reject(new Error(`The service ${options.way} ended.`))
      child.once('exit', onExit)
      child.once('message', (message) => {
        child.off('exit', onExit)
        resolve(message)
      })
      if (question !== '') child.send(question)
    })
  const { port, backends } = /** @type {any} */ (await answer(''))
  return {
    url: `http://127.0.0.1:${port}`,
    way: options.way,
    pids: [/** @type {number} */ (child.pid)],
    backends,
    effects: async () => Number(await answer('effects')),
    flush: (synchronous) => answer(synchronous),
    stop: async () => {
      child.send('stop')
      await ended
    },
  }
}

/**
 * @typedef {object} Kind What is sent.
 * @property {boolean} keyed
 * @property {number} [repeated] How many requests take turns, again and again. Default: a fresh one each time.
 */

/**
 * Sends a number of requests and returns how long they took, in ns: from the first byte written to the last answer
 * read.
 */
export function loadOf(url, { keyed, repeated = Number.POSITIVE_INFINITY }) {
  let number = 0
  return async (/** @type {number} */ count) => {
    let first = 0n
    let last = 0n
    const result = await autocannon({
      url,
      amount: count,
      connections,
      timeout: 60,
      // It notices only so often that all is done.
      sampleInt: 10,
      requests: [
        {
          method: 'POST',
          path: '/payments',
          headers: { authorization: 'Bearer c-20417', 'content-type': 'application/json' },
          setupRequest: (/** @type {any} */ sent) => {
            if (first === 0n) first = process.hrtime.bigint()
            number = number + 1 >= repeated ? 0 : number + 1
            const body = request(number)
            // Some ask for 21 characters at least.
            if (keyed) sent.headers['idempotency-key'] = `intent-of-${String(number).padStart(12, '0')}`
            sent.body = JSON.stringify(body)
            return sent
          },
          onResponse: () => {
            last = process.hrtime.bigint()
          },
        },
      ],
    })
    assert.equal(result['2xx'], count, `${result.non2xx} answers were refusals, ${result.errors} were errors`)
    return Number(last - first)
  }
}

/**
 * One request by itself, for checks.
 * @param {string} url
 * @param {string | undefined} key
 */
export async function post(url, key) {
  const response = await fetch(`${url}/payments`, {
    method: 'POST',
    headers: {
      authorization: 'Bearer c-20417',
      'content-type': 'application/json',
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    },
    body: JSON.stringify({ ...request(0), check: key }),
  })
  return { status: response.status, body: await response.json() }
}
