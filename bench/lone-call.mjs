// What a call of a lone policy is made of: its parts measured one on top of the other, beside the call itself.

import { lines } from './harness.mjs'

export const ours = 'reprise'
export const bare = 'bare await'
const promise = '.then with functions that exist'
const attemptObject = '.then with closures over an attempt'
const frame = 'async function that awaits it'

/** As much as an attempt holds: its number, its key, its deadline, and a signal that nobody has asked for. */
class Attempt {
  #controller
  #aborted = false

  /** @param {number} number */
  constructor(number) {
    this.number = number
    this.key = undefined
    this.deadline = undefined
  }

  get signal() {
    this.#controller ??= new AbortController()
    if (this.#aborted) this.#controller.abort()
    return this.#controller.signal
  }
}

const kept = (/** @type {number} */ result) => result
const refused = (/** @type {unknown} */ error) => Promise.reject(error)

/**
 * The parts of a lone call, one on top of the other, each as a subject of its own.
 * @type {Record<string, (work: () => Promise<number>) => () => Promise<number>>}
 */
export const parts = {
  [bare]: (work) => work,
  [promise]: (work) => () => work().then(kept, refused),
  [attemptObject]: (work) => () => {
    const attempt = new Attempt(1)
    // Handed over as ours is, though this work does not look at it.
    const body = /** @type {(attempt: Attempt) => Promise<number>} */ (work)
    return body(attempt).then(
      (result) => (attempt.number === 0 ? 0 : result),
      (error) => Promise.reject(attempt.number === 0 ? undefined : error),
    )
  },
  [frame]: (work) => async () => {
    try {
      return await work()
    } catch (error) {
      if (error !== undefined) throw error
      return 0
    }
  },
}

/**
 * Where the nanoseconds of a lone call go, from the lower quartiles of this run, which neighbours disturb least.
 * @param {Parameters<typeof lines>[0]} measured
 */
export function shares(measured) {
  const of = (/** @type {string} */ who) =>
    measured.results.find(({ name }) => name === who)?.nanoseconds.low ?? Number.NaN
  const rows = [
    ['the body and the await of its caller', of(bare)],
    ['one more promise', of(promise) - of(bare)],
    ['the object of the attempt, and two closures for what may come of it', of(attemptObject) - of(promise)],
    ['the rest: guard, layers, budget, the look at the result', of(ours) - of(attemptObject)],
    ['for comparison, the frame of an async function in the place of both', of(frame) - of(bare)],
  ]
  return [
    ...lines(measured),
    '  where the nanoseconds go:',
    ...rows.map(([what, nanoseconds]) => `  ${Number(nanoseconds).toFixed(0).padStart(6)} ns  ${what}`),
  ]
}
