// A call that succeeds at once, which is what nearly every call does: the price of being able to repeat it.

import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { cpSync, rmSync } from 'node:fs'
import { entryPointSize } from './entry-point-size.mjs'
import { lines } from './harness.mjs'
import { bare, ours, parts, shares } from './lone-call.mjs'

const isNewest = Number.parseInt(process.versions.node, 10) >= 22
const { asyncRetry, backOff, CircuitBreaker, cockatiel, effect, folder, pRetry } = await (isNewest
  ? import('./newest/peers.mjs')
  : import('./peers.mjs'))

export const peers = ['cockatiel', 'p-retry', 'async-retry', 'opossum', 'exponential-backoff', 'effect']
export const peersFolder = folder

const byHand = 'loop written by hand'

// Everybody makes three attempts and waits about as long between them; nobody has to, except in the check.
const attempts = 3
const baseMs = 1
const timeoutMs = 10_000

/** @typedef {import('../dist/retry/index.js')} Retry */
/** @typedef {() => Promise<number>} Work */
/** @typedef {(work: Work) => () => Promise<number>} Way Makes what is measured, once; then only calls are. */

/** The body of every call: an async function that resolves at once. */
async function answer() {
  return 42
}

let copies = 0
const copiesFolder = new URL(`./.cache/copies-${process.pid}/`, import.meta.url)
process.once('exit', () => rmSync(copiesFolder, { recursive: true, force: true }))

/**
 * A copy of the package with a memory of its own, since a policy behaves otherwise where the process has repeated lately.
 * @returns {Promise<Retry>}
 */
async function ownCopy() {
  copies += 1
  const copy = new URL(`${copies}/`, copiesFolder)
  cpSync(new URL('../dist/', import.meta.url), copy, { recursive: true })
  return import(new URL('retry/index.js', copy).href)
}

/**
 * @typedef {object} Company
 * @property {string} text How it is called in the name of a case.
 * @property {number} policies How many policies the process has, ours included.
 * @property {boolean} [again] Whether somebody has repeated lately, so that first attempts enter async context.
 */

/** @type {Company[]} */
const companies = [
  { text: 'one policy', policies: 1 },
  { text: 'twenty policies', policies: 20 },
]
/** What the ten seconds after a repeat cost. @type {Company} */
const afterRepeat = { text: 'twenty policies, after a repeat', policies: 20, again: true }

/** @param {Company} company */
async function ourRetry({ policies, again }) {
  const { fullJitter, readOnly, retryPolicy, watchKeys } = await ownCopy()
  const policy = retryPolicy({ attempts, backoff: fullJitter({ baseMs }) })
  for (let count = 1; count < policies; count++) retryPolicy({ attempts })
  // As after a repeat, for longer than ten seconds.
  if (again) watchKeys()
  const guard = readOnly()
  return (/** @type {Work} */ work) => () => policy.run(guard, work)
}

/** @param {Company} company */
async function ourTrio({ policies, again }) {
  const { consecutiveBreaker, fullJitter, readOnly, retryPolicy, watchKeys } = await ownCopy()
  const breaker = consecutiveBreaker({ failures: 5 })
  const backoff = fullJitter({ baseMs })
  const policy = retryPolicy({ attempts, backoff, breaker, attemptTimeout: timeoutMs })
  for (let count = 1; count < policies; count++) retryPolicy({ attempts })
  if (again) watchKeys()
  const guard = readOnly()
  return (/** @type {Work} */ work) => () => policy.run(guard, work)
}

/** What a careful person writes without a library. @param {Work} work */
async function loop(work) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (attempt >= attempts) throw error
      const delayMs = Math.random() * Math.min(2000, baseMs * 2 ** (attempt - 1))
      await new Promise((resolve) => setTimeout(resolve, delayMs))
    }
  }
}

function cockatielRetry() {
  const { ExponentialBackoff, handleAll, retry } = cockatiel
  // Its maxAttempts does not count the first call.
  return retry(handleAll, { maxAttempts: attempts - 1, backoff: new ExponentialBackoff({ initialDelay: baseMs }) })
}

/** @type {Record<string, Way>} */
const retryWays = {
  [bare]: (work) => work,
  [byHand]: (work) => () => loop(work),
  cockatiel: (work) => {
    const policy = cockatielRetry()
    return () => policy.execute(work)
  },
  'p-retry': (work) => {
    const options = { retries: attempts - 1, minTimeout: baseMs, randomize: true }
    return () => pRetry(work, options)
  },
  'async-retry': (work) => {
    const options = { retries: attempts - 1, minTimeout: baseMs }
    return () => asyncRetry(work, options)
  },
  'opossum (breaker only)': (work) => {
    const breaker = new CircuitBreaker(work, { timeout: false })
    return () => breaker.fire()
  },
  'exponential-backoff': (work) => {
    const options = { numOfAttempts: attempts, startingDelay: baseMs }
    return () => backOff(work, options)
  },
  effect: (work) => {
    const { Effect, Schedule } = effect
    const again = { schedule: Schedule.exponential(`${baseMs} millis`), times: attempts - 1 }
    const program = Effect.retry(Effect.tryPromise(work), again)
    return () => Effect.runPromise(program)
  },
}
const neverRepeats = new Set([bare, 'opossum (breaker only)'])

const wrap = 'cockatiel wrap'

/** @type {Record<string, Way>} */
const trioWays = {
  [wrap]: (work) => {
    const { circuitBreaker, ConsecutiveBreaker, handleAll, timeout, TimeoutStrategy } = cockatiel
    const breaker = circuitBreaker(handleAll, { halfOpenAfter: 10_000, breaker: new ConsecutiveBreaker(5) })
    // Ours does not wait for a body that ignores its signal, and neither does this strategy.
    const policy = cockatiel.wrap(cockatielRetry(), breaker, timeout(timeoutMs, TimeoutStrategy.Aggressive))
    return () => policy.execute(work)
  },
  // For scale: it has neither breaker nor time-out.
  [`${byHand} (retry only)`]: retryWays[byHand],
}

const retryTargets = [
  { against: byHand, limit: 1.15 },
  { against: 'cockatiel', limit: 1 },
]
const trioTargets = [{ against: wrap, limit: 0.1 }]

/**
 * What keeps a case from its target, in one line.
 * @param {Company} company
 */
function limitOf({ again }) {
  return again
    ? 'what limits it: after a repeat each call enters async context, see docs/decisions/0012-layers.md'
    : 'what limits it: one more promise and two closures for each call, see the list of a lone call'
}

/** The cases of this bench, each after a check that all its subjects do what their names say. */
export async function* cases() {
  const [alone] = companies
  const lone = {
    ...(await made('a lone call, part by part', await ourRetry(alone), parts, [], undefined)),
    lines: shares,
  }
  yield lone
  // Idle comes first: a storage that was once in use leaves its traces in the compiled code of the process.
  for (const active of [false, true]) {
    for (const company of [...companies, afterRepeat]) {
      const surroundings = `${company.text}, context ${active ? 'active' : 'idle'}`
      const storage = active ? new AsyncLocalStorage() : undefined
      const explained = (/** @type {Parameters<typeof lines>[0]} */ measured) => {
        const isMissed = measured.ratios.some(({ met }) => met === false)
        return [...lines(measured), ...(isMissed ? [`  ${limitOf(company)}`] : [])]
      }
      // For scale only: nobody is promised a price for the seconds after a repeat.
      const targets = company.again ? [] : retryTargets
      const retryCase = await made(`retry, ${surroundings}`, await ourRetry(company), retryWays, targets, storage)
      yield { ...retryCase, lines: explained }
      const trioName = `retry + breaker + time-out, ${surroundings}`
      const trio = await made(trioName, await ourTrio(company), trioWays, company.again ? [] : trioTargets, storage)
      yield { ...trio, lines: explained }
      storage?.disable()
    }
  }
}

/** How much an ordinary program loads. */
export function sizes() {
  return [explainedSize()]
}

async function explainedSize() {
  const size = await entryPointSize('reprise/retry', 'dist/retry/index.js', 9000)
  const why = ' (what limits it: what is decided by default, see docs/decisions/0013-weight-of-retry.md)'
  return size.met ? size : { ...size, target: size.target + why }
}

/**
 * @param {string} name
 * @param {Way} way
 * @param {Record<string, Way>} others
 * @param {import('./harness.mjs').Target[]} targets
 * @param {AsyncLocalStorage<unknown> | undefined} storage
 */
async function made(name, way, others, targets, storage) {
  const ways = { [ours]: way, ...others }
  for (const [who, one] of Object.entries(ways))
    await check(`${name}: ${who}`, one, neverRepeats.has(who) || Object.hasOwn(parts, who) ? 1 : attempts)
  // The check has made ours repeat. What is measured is a call that nobody repeated for ten seconds before.
  const { now } = performance
  performance.now = () => now.call(performance) + 10_001
  await way(answer)()
  performance.now = now
  const subjects = Object.entries(ways).map(([who, one]) => ({ name: who, run: one(answer), waits: true }))
  return {
    name,
    subjects,
    targets,
    ...(storage && { within: (/** @type {() => unknown} */ work) => storage.run({}, work) }),
  }
}

/**
 * @param {string} name
 * @param {Way} way
 * @param {number} calls How often it calls what fails until its last attempt.
 */
async function check(name, way, calls) {
  assert.equal(await way(answer)(), 42, name)
  let called = 0
  const run = way(async () => {
    called += 1
    if (called < attempts) throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED', syscall: 'connect' })
    return called
  })
  if (calls === attempts) assert.equal(await run(), attempts, name)
  else await assert.rejects(run(), name)
  assert.equal(called, calls, name)
}
