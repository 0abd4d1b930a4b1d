// What a storm did to the service, read off its seconds: amplification, recovery, and the two names for what went
// wrong.

import { type StormSettings, triggerEndSeconds } from './storm-settings.js'

/** One second of a run. */
export interface StormSecond {
  /** Which second it is, from 0. */
  readonly second: number
  /** Intents that arrived. */
  readonly offered: number
  /** Requests sent to the service, repeats included. */
  readonly attempts: number
  /** Intents whose client got its answer in time. */
  readonly goodput: number
  /** Requests that waited at the service at the end of the second. */
  readonly queue: number
  /** What was left in a budget at the end of the second, as a mean over the clients; undefined without budgets. */
  readonly tokens: number | undefined
}

/**
 * What became of the service. `metastable` and `storm` are the names of {@link StormFindings}, the first before the
 * second; `recovered`: neither, and it is well again; `untroubled`: neither, and goodput never fell, in seconds that
 * end before a recovery from the trigger could be seen; `down`: none of them, at the end of the run.
 */
export type StormOutcome = 'recovered' | 'untroubled' | 'storm' | 'metastable' | 'down'

/** What a run shows. Ratios are to what was offered in the same seconds. */
export interface StormFindings {
  /** The verdict in one word. */
  readonly outcome: StormOutcome
  /**
   * Seconds from the end of the trigger to the first five in a row with at least 95 % goodput each; undefined if there
   * are none before the end of the run.
   */
  readonly recoveredAfterSeconds: number | undefined
  /** Whether requests passed four times what was offered, over some ten seconds in a row. */
  readonly storm: boolean
  /**
   * The second in which the service was found METASTABLE: the trigger has been over for twenty seconds, what is offered
   * is below the capacity, and yet through all of these seconds less than half of it succeeded, the queue was longer
   * than a client waits, and it did not get shorter. Once found, it stays: a later recovery does not take the name
   * away. Undefined if never.
   */
  readonly metastableAtSecond: number | undefined
  /** Requests per intent at the highest, over ten seconds in a row. */
  readonly peakAmplification: number
  /** Requests per intent during the trigger and the ten seconds after it. */
  readonly triggerAmplification: number
  /** Requests per intent in the last ten seconds. */
  readonly finalAmplification: number
  /** The share of intents that succeeded in the last ten seconds. */
  readonly finalGoodput: number
  /** The share of intents that failed, from the trigger to the end. */
  readonly lost: number
}

const well = 0.95
const recoverySeconds = 5
const meanSeconds = 10
const stormAmplification = 4
const downSeconds = 20
const downGoodput = 0.5

/** Judges the seconds of a run, or those that have been played so far. */
export function stormFindings(settings: StormSettings, series: readonly StormSecond[]): StormFindings {
  const endSecond = Math.ceil(triggerEndSeconds(settings))
  const trigger = Math.floor(settings.triggerAtSeconds)
  const recoveredAfterSeconds = recovery(series, endSecond)
  const metastableAtSecond = metastable(settings, series, endSecond)
  const peakAmplification = peak(series)
  const storm = peakAmplification > stormAmplification
  const isEarly = series.length < endSecond + recoverySeconds
  const lacking = isEarly && isUntroubled(settings, series) ? 'untroubled' : 'down'
  const calm = recoveredAfterSeconds === undefined ? lacking : 'recovered'
  const last = series.slice(-meanSeconds)
  return {
    outcome: metastableAtSecond !== undefined ? 'metastable' : storm ? 'storm' : calm,
    recoveredAfterSeconds,
    storm,
    metastableAtSecond,
    peakAmplification,
    triggerAmplification: ratio(series.slice(trigger, endSecond + meanSeconds), 'attempts'),
    finalAmplification: ratio(last, 'attempts'),
    finalGoodput: ratio(last, 'goodput'),
    lost: Math.max(0, 1 - ratio(series.slice(trigger), 'goodput')),
  }
}

/** A member per intent offered, over some seconds; as if nothing was lost where nothing was offered. */
function ratio(seconds: readonly StormSecond[], member: 'attempts' | 'goodput'): number {
  let offered = 0
  let sum = 0
  for (const second of seconds) {
    offered += second.offered
    sum += second[member]
  }
  return offered === 0 ? 1 : sum / offered
}

function recovery(series: readonly StormSecond[], endSecond: number): number | undefined {
  let inRow = 0
  for (const { second, goodput, offered } of series.slice(endSecond)) {
    inRow = goodput >= well * offered ? inRow + 1 : 0
    if (inRow === recoverySeconds) return second - recoverySeconds + 1 - endSecond
  }
  return undefined
}

// Over a few seconds, and with room for what is under way at their end, which is answered in the next one: with few
// intents a single one of them is much. As many as a service that is well holds at a time, and what chance adds
// (Little's law; a Poisson number is hardly ever three deviations above its mean).
function isUntroubled({ load, serviceMs, timeoutMs }: StormSettings, series: readonly StormSecond[]): boolean {
  const held = (load * Math.min(serviceMs, timeoutMs)) / 1000
  const underWay = held + 3 * Math.sqrt(held) + 1
  for (let end = Math.min(recoverySeconds, series.length); end <= series.length; end += 1) {
    const part = series.slice(Math.max(0, end - recoverySeconds), end)
    const offered = part.reduce((sum, second) => sum + second.offered, 0)
    const goodput = part.reduce((sum, second) => sum + second.goodput, 0)
    if (goodput + underWay < well * offered) return false
  }
  return true
}

function peak(series: readonly StormSecond[]): number {
  let highest = 1
  for (let end = meanSeconds; end <= series.length; end += 1) {
    highest = Math.max(highest, ratio(series.slice(end - meanSeconds, end), 'attempts'))
  }
  return highest
}

function metastable(
  { load, capacity, timeoutMs, triggerSeconds }: StormSettings,
  series: readonly StormSecond[],
  endSecond: number,
): number | undefined {
  if (load >= capacity || triggerSeconds === 0) return undefined
  const longQueue = (capacity * timeoutMs) / 1000
  let inRow = 0
  for (let place = endSecond; place < series.length; place += 1) {
    const { second, goodput, offered, queue } = series[place] as StormSecond
    inRow = goodput < downGoodput * offered && queue > longQueue ? inRow + 1 : 0
    const before = series[place - downSeconds + 1]
    if (inRow >= downSeconds && before !== undefined && queue >= before.queue) return second
  }
  return undefined
}
