// Side-by-side measurement: all subjects of a case take turns in one process, round after round, so that whatever slows
// the machine slows all of them. What counts is the ratio of two subjects within a round, and its median over the rounds.

/**
 * @typedef {object} Subject
 * @property {string} name
 * @property {() => unknown} run One operation. Its answer is kept, so that no compiler can leave the work out.
 * @property {boolean} [waits] Whether `run` answers a promise that is part of the operation: each is awaited before the next.
 */
/**
 * @typedef {object} Target
 * @property {string} against The name of the subject that ours is compared with.
 * @property {number} limit The ratio ours / theirs that is still good.
 * @property {boolean} [below] Whether the ratio has to stay below the limit instead of reaching it at most.
 */
/**
 * @typedef {object} Case
 * @property {string} name
 * @property {Subject[]} subjects Ours first.
 * @property {Target[]} targets Subjects without a target are compared all the same.
 * @property {<Result>(work: () => Result) => Result} [within] Surroundings in which all subjects run. Default: none.
 */
/** @typedef {{ rounds: number, turnMs: number, warmUpMs: number }} Effort */
/** @typedef {{ low: number, median: number, high: number }} Spread Quartiles around a median. */

/** A full run: enough rounds for steady medians. */
export const fullEffort = { rounds: 41, turnMs: 10, warmUpMs: 250 }
/** A short run: shows that everything works and agrees; its ratios mean little. */
export const smokeEffort = { rounds: 3, turnMs: 1, warmUpMs: 2 }

/** Where answers go, so that they are used. */
export const sink = { last: /** @type {unknown} */ (undefined) }

/**
 * Measures one case.
 * @param {Case} subject
 * @param {Effort} effort
 */
export function measure({ within = (work) => work(), ...subject }, effort) {
  return within(() => measureHere(subject, effort))
}

/**
 * @param {Case} subject
 * @param {Effort} effort
 */
async function measureHere({ name, subjects, targets }, effort) {
  /** @type {number[]} */
  const counts = []
  for (const subject of subjects) counts.push(await warmUp(subject, effort))
  /** @type {number[][]} */
  const times = subjects.map(() => [])
  for (let round = 0; round < effort.rounds; round++) {
    for (let turn = 0; turn < subjects.length; turn++) {
      // Another one begins in each round, so that nobody always runs after the same neighbour's garbage.
      const index = (turn + round) % subjects.length
      times[index].push(await timeOf(subjects[index], counts[index]))
    }
  }
  const results = subjects.map((subject, index) => ({ name: subject.name, nanoseconds: spread(times[index]) }))
  const ratios = subjects.slice(1).map((subject, index) => {
    const ratio = spread(times[0].map((time, round) => time / times[index + 1][round]))
    const target = targets.find((candidate) => candidate.against === subject.name)
    return { against: subject.name, ratio, ...judge(ratio.median, target) }
  })
  return { name, results, ratios }
}

/**
 * @param {number} ratio
 * @param {Target | undefined} target
 */
function judge(ratio, target) {
  if (target === undefined) return {}
  const { limit, below = false } = target
  return { target: `${below ? '<' : '<='} ${limit.toFixed(2)}`, met: below ? ratio < limit : ratio <= limit }
}

/**
 * Runs until the compiler had its chance; answers how many operations fill a turn.
 * @param {Subject} subject
 * @param {Effort} effort
 */
async function warmUp(subject, { turnMs, warmUpMs }) {
  const until = performance.now() + warmUpMs
  let perOperation = await timeOf(subject, 1)
  while (performance.now() < until) perOperation = await timeOf(subject, Math.max(1, Math.ceil(1e6 / perOperation)))
  return Math.max(1, Math.round((turnMs * 1e6) / perOperation))
}

/**
 * The mean time of an operation, in nanoseconds.
 * @param {Subject} subject
 * @param {number} count
 */
async function timeOf({ run, waits = false }, count) {
  // Whatever a neighbour left to be done after its turn (ticks, timers, a context to be put to rest) is done before this one.
  await new Promise((resolve) => setImmediate(resolve))
  return Math.max(1, waits ? await waitingTime(run, count) : workingTime(run, count)) / count
}

/**
 * @param {() => unknown} run
 * @param {number} count
 */
function workingTime(run, count) {
  const start = process.hrtime.bigint()
  for (let index = 0; index < count; index++) sink.last = run()
  return Number(process.hrtime.bigint() - start)
}

/**
 * @param {() => unknown} run
 * @param {number} count
 */
async function waitingTime(run, count) {
  const start = process.hrtime.bigint()
  for (let index = 0; index < count; index++) sink.last = await run()
  return Number(process.hrtime.bigint() - start)
}

/**
 * @param {number[]} values
 * @returns {Spread}
 */
function spread(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (/** @type {number} */ share) => sorted[Math.round((sorted.length - 1) * share)]
  return { low: at(0.25), median: at(0.5), high: at(0.75) }
}

/**
 * A measured case as lines for people.
 * @param {Awaited<ReturnType<typeof measure>>} measured
 */
export function lines({ name, results, ratios }) {
  const width = Math.max(...results.map((result) => result.name.length))
  const ours = results[0].name
  return [
    name,
    ...results.map((result) => {
      const { low, median, high } = result.nanoseconds
      const time = `${duration(median)} (${duration(low)} .. ${duration(high)})`
      const ratio = ratios.find((candidate) => candidate.against === result.name)
      const line = `  ${result.name.padEnd(width)}  ${time.padEnd(34)}`
      return ratio === undefined ? line.trimEnd() : `${line}  ${comparison(ours, ratio)}`
    }),
  ]
}

/**
 * @param {string} ours
 * @param {{ ratio: Spread, target?: string, met?: boolean }} compared
 */
function comparison(ours, { ratio, target, met }) {
  const text = `${ours} takes ${ratio.median.toFixed(2)} x (${ratio.low.toFixed(2)} .. ${ratio.high.toFixed(2)})`
  return target === undefined ? text : `${text}, target ${target}: ${met ? 'met' : 'MISSED'}`
}

/** @param {number} nanoseconds */
function duration(nanoseconds) {
  if (nanoseconds < 1e3) return `${nanoseconds.toFixed(0)} ns`
  if (nanoseconds < 1e6) return `${(nanoseconds / 1e3).toFixed(2)} us`
  return `${(nanoseconds / 1e6).toFixed(2)} ms`
}
