// Side-by-side measurement: all subjects of a case take turns in one process, round after round, so that whatever slows
// the machine slows all of them. What counts is the ratio of two subjects within a round, and its median over the
// rounds.

/**
 * @typedef {object} Subject
 * @property {string} name
 * @property {() => unknown} [run] One operation. Its answer is kept, so that no compiler can leave the work out.
 * @property {(count: number) => Promise<number>} [turn] In place of `run`: does so many operations, and answers how
 *   long they took, in ns.
 * @property {boolean} [waits] Whether `run` answers a promise that is part of the operation: each is awaited before the
 *   next.
 * @property {number} [atOnce] How many run side by side, each awaiting its own before the next. Default 1.
 */
/**
 * @typedef {object} Target
 * @property {string} against The name of the subject that ours is compared with.
 * @property {number} limit The ratio of times, ours / theirs, that is still good. In a case of rates the least ratio of
 *   rates, ours / theirs.
 * @property {boolean} [below] Whether the ratio has to stay below the limit instead of reaching it at most.
 */
/**
 * @typedef {object} Meter What an operation uses up beside time.
 * @property {string} name With its unit.
 * @property {() => number} read How much was used up since some fixed moment.
 */
/**
 * @typedef {object} Case
 * @property {string} name
 * @property {Subject[]} subjects Ours first.
 * @property {Target[]} targets Subjects without a target are compared all the same.
 * @property {<Result>(work: () => Result) => Result} [within] Surroundings in which all subjects run. Default: none.
 * @property {boolean} [rates] Whether operations a second are shown and compared, and not their times.
 * @property {Meter[]} [meters] Read before and after every turn. Default: none.
 * @property {Effort} [effort] A full run of this case, where the usual turns are too short for it.
 * @property {Effort} [shortEffort] A short run of this case, where the usual rounds are too many for it.
 * @property {string[] | ((used: Used) => string[])} [notes] Lines that belong to the case, which may be made of what
 *   the meters read. Default: none.
 */
/**
 * @typedef {(subject: string, meter: string) => number} Used The median that a meter read for an operation of a
 *   subject.
 */
/**
 * @typedef {object} Effort
 * @property {number} rounds
 * @property {number} turnMs
 * @property {number} warmUpMs How long a subject runs before it is measured, at least.
 * @property {number} [warmUpCalls] How often, at least. Default 0.
 */
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
  const own = effort === fullEffort ? subject.effort : subject.shortEffort
  return within(() => measureHere(subject, own ?? effort))
}

/**
 * @param {Case} subject
 * @param {Effort} effort
 */
async function measureHere({ name, subjects, targets, rates = false, meters = [], notes = [] }, effort) {
  /** @type {number[]} */
  const counts = []
  for (const subject of subjects) counts.push(await warmUp(subject, effort))
  /** @type {number[][]} */
  const times = subjects.map(() => [])
  /** @type {number[][][]} */
  const used = subjects.map(() => meters.map(() => []))
  for (let round = 0; round < effort.rounds; round++) {
    for (let turn = 0; turn < subjects.length; turn++) {
      // Another one begins in each round, so that nobody always runs after the same neighbour's garbage.
      const index = (turn + round) % subjects.length
      const before = meters.map((meter) => meter.read())
      times[index].push(await timeOf(subjects[index], counts[index]))
      for (const [place, meter] of meters.entries()) {
        used[index][place].push((meter.read() - before[place]) / counts[index])
      }
    }
  }
  const results = subjects.map((subject, index) => ({
    name: subject.name,
    nanoseconds: spread(times[index]),
    ...(meters.length > 0 && {
      used: Object.fromEntries(meters.map((meter, place) => [meter.name, spread(used[index][place])])),
    }),
  }))
  const ratios = subjects.slice(1).map((subject, index) => {
    const timeRatio = (/** @type {number} */ time, /** @type {number} */ round) => time / times[index + 1][round]
    const ratio = spread(times[0].map((time, round) => timeRatio(time, round) ** (rates ? -1 : 1)))
    const target = targets.find((candidate) => candidate.against === subject.name)
    return { against: subject.name, ratio, ...judge(ratio.median, target, rates) }
  })
  const lines = typeof notes === 'function' ? notes(usedBy(results)) : notes
  return { name, rates, results, ratios, notes: lines }
}

/**
 * @param {{ name: string, used?: Record<string, Spread> }[]} results
 * @returns {Used}
 */
function usedBy(results) {
  return (subject, meter) => results.find(({ name }) => name === subject)?.used?.[meter]?.median ?? Number.NaN
}

/**
 * @param {number} ratio
 * @param {Target | undefined} target
 * @param {boolean} rates
 */
function judge(ratio, target, rates) {
  if (target === undefined) return {}
  if (rates) return { target: `>= ${target.limit.toFixed(2)}`, met: ratio >= target.limit }
  const { limit, below = false } = target
  return { target: `${below ? '<' : '<='} ${limit.toFixed(2)}`, met: below ? ratio < limit : ratio <= limit }
}

/**
 * Runs until the compiler had its chance; answers how many operations fill a turn.
 * @param {Subject} subject
 * @param {Effort} effort
 */
async function warmUp(subject, { turnMs, warmUpMs, warmUpCalls = 0 }) {
  const until = performance.now() + warmUpMs
  const { atOnce = 1, turn } = subject
  // Whoever does whole turns needs some time to begin one.
  const batchMs = turn === undefined ? 1 : turnMs
  let perOperation = await timeOf(subject, atOnce)
  for (let calls = atOnce; performance.now() < until || calls < warmUpCalls; ) {
    const count = Math.max(atOnce, Math.ceil((batchMs * 1e6) / perOperation))
    perOperation = await timeOf(subject, count)
    calls += count
  }
  return Math.max(atOnce, Math.round((turnMs * 1e6) / perOperation))
}

/**
 * The mean time of an operation, in nanoseconds.
 * @param {Subject} subject
 * @param {number} count
 */
async function timeOf({ run = () => undefined, turn, waits = false, atOnce = 1 }, count) {
  // Whatever a neighbour left to be done after its turn (ticks, timers, a context to be put to rest) is done before
  // this one.
  await new Promise((resolve) => setImmediate(resolve))
  if (turn !== undefined) return Math.max(1, await turn(count)) / count
  const time = waits
    ? await (atOnce > 1 ? sideBySideTime(run, count, atOnce) : waitingTime(run, count))
    : workingTime(run, count)
  return Math.max(1, time) / count
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
 * @param {() => unknown} run
 * @param {number} count
 * @param {number} atOnce
 */
async function sideBySideTime(run, count, atOnce) {
  let left = count
  const start = process.hrtime.bigint()
  const workers = Array.from({ length: atOnce }, async () => {
    for (; left > 0; ) {
      left -= 1
      sink.last = await run()
    }
  })
  await Promise.all(workers)
  return Number(process.hrtime.bigint() - start)
}

/**
 * @param {number[]} values
 * @returns {Spread}
 */
export function spread(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (/** @type {number} */ share) => sorted[Math.round((sorted.length - 1) * share)]
  return { low: at(0.25), median: at(0.5), high: at(0.75) }
}

/**
 * A measured case as lines for people.
 * @param {Awaited<ReturnType<typeof measure>>} measured
 */
export function lines({ name, rates, results, ratios, notes }) {
  const width = Math.max(...results.map((result) => result.name.length))
  const ours = results[0].name
  const shown = rates ? rate : duration
  return [
    name,
    ...results.map((result) => {
      const { low, median, high } = result.nanoseconds
      const time = `${shown(median)} (${rates ? shown(high) : shown(low)} .. ${rates ? shown(low) : shown(high)})`
      const ratio = ratios.find((candidate) => candidate.against === result.name)
      const line = `  ${result.name.padEnd(width)}  ${time.padEnd(34)}`
      return ratio === undefined ? line.trimEnd() : `${line}  ${comparison(ours, ratio, rates)}`
    }),
    ...meterLines(results, width),
    ...notes.map((note) => `  ${note}`),
  ]
}

/**
 * What was asked for, and what came of it: a row for each target.
 * @param {Awaited<ReturnType<typeof measure>>} measured
 */
export function rowsOf({ name, results, ratios }) {
  return ratios.flatMap(({ against, ratio, target, met }) =>
    target === undefined
      ? []
      : [{ name: `${name}: ${results[0].name} / ${against}`, ratio: ratio.median, target, met }],
  )
}

/**
 * @param {{ name: string, used?: Record<string, Spread> }[]} results
 * @param {number} width
 */
function meterLines(results, width) {
  return Object.keys(results[0].used ?? {}).flatMap((meter) => [
    `  ${meter}, each:`,
    ...results.map(({ name, used }) => `    ${name.padEnd(width)}  ${used?.[meter].median.toFixed(0)}`),
  ])
}

/**
 * @param {string} ours
 * @param {{ ratio: Spread, target?: string, met?: boolean }} compared
 * @param {boolean} rates
 */
function comparison(ours, { ratio, target, met }, rates) {
  const spreadText = `${ratio.median.toFixed(2)} x (${ratio.low.toFixed(2)} .. ${ratio.high.toFixed(2)})`
  const text = rates ? `${ours} does ${spreadText} as many` : `${ours} takes ${spreadText}`
  return target === undefined ? text : `${text}, target ${target}: ${met ? 'met' : 'MISSED'}`
}

/** @param {number} nanoseconds */
function rate(nanoseconds) {
  return `${(1e9 / nanoseconds).toFixed(0)}/s`
}

/** @param {number} nanoseconds */
function duration(nanoseconds) {
  if (nanoseconds < 1e3) return `${nanoseconds.toFixed(0)} ns`
  if (nanoseconds < 1e6) return `${(nanoseconds / 1e3).toFixed(2)} us`
  return `${(nanoseconds / 1e6).toFixed(2)} ms`
}
