// Controls fault points from a test: stop at one, fail at one, act at the n-th time, and see which were reached.
//
// A child process reads its faults from the environment variable REPRISE_FAULT, so that a test can kill it at an exact
// point.

import { writeSync } from 'node:fs'
import { armFaultPoints, RepriseError, systemClock } from '../kernel/index.js'

/** At which of its visits a point acts. */
export interface AtOptions {
  /** The visit that acts, the first being 1. Default 1. */
  readonly nth?: number
  /** How many visits in a row act. Default 1; `Infinity` for all. */
  readonly times?: number
}

/** A point at which the code under test waits. */
export interface StoppedAt {
  /** Resolves when the code has arrived at the point. */
  readonly reached: Promise<void>
  /** Lets the code continue. */
  release(): void
}

/** The fault points of this process, armed. `'*'` in place of a name means any point. */
export interface FaultPoints {
  /** The names of the last 10,000 points reached, in order. */
  readonly reached: readonly string[]
  /** How often a point was reached. */
  count(point: string): number
  /** Runs a function at a point. What it throws is thrown there. */
  at(point: string, work: (point: string) => void | PromiseLike<void>, options?: AtOptions): void
  /** Throws an error at a point. Default: an {@link InjectedFault}. */
  throwAt(point: string, error?: unknown, options?: AtOptions): void
  /** Waits at a point until it is released. */
  stopAt(point: string, options?: AtOptions): StoppedAt
  /** Disarms all points and releases what waits at one. */
  disarm(): void
}

/** The error that a fault point throws by default. No classifier knows it. */
export class InjectedFault extends Error {
  override readonly name: string = 'InjectedFault'
  readonly point: string

  constructor(point: string) {
    super(`A fault was injected at ${point}.`)
    this.point = point
  }
}

interface Rule {
  readonly point: string
  readonly nth: number
  readonly times: number
  readonly work: (point: string) => void | PromiseLike<void>
  seen: number
}

const maxReached = 10_000

/**
 * Arms the fault points of this process and records every point that is reached. Whatever armed them before is
 * disarmed.
 *
 * @example
 * ```ts
 * import { faultPoints } from 'reprise/testing'
 *
 * const points = faultPoints()
 * points.throwAt('transaction.before-commit')
 * // … run the code under test …
 * console.log(points.count('transaction.before-commit'))
 * points.disarm()
 * ```
 */
export function faultPoints(): FaultPoints {
  const reached: string[] = []
  const counts = new Map<string, number>()
  const rules: Rule[] = []
  const releases: (() => void)[] = []

  const disarm = armFaultPoints(async (point) => {
    reached.push(point)
    if (reached.length > maxReached) reached.shift()
    counts.set(point, (counts.get(point) ?? 0) + 1)
    // All rules count the visit before the first one acts: an action may wait, and other visits may come in between.
    const due = rules.filter((rule) => isDue(rule, point))
    for (const rule of due) await rule.work(point)
  })
  const at: FaultPoints['at'] = (point, work, { nth = 1, times = 1 } = {}) => {
    if (!Number.isSafeInteger(nth) || nth < 1 || !(times >= 1)) {
      throw new RepriseError('ARGUMENT_INVALID', 'Fault points are counted from 1.')
    }
    rules.push({ point, nth, times, work, seen: 0 })
  }
  return {
    reached,
    count: (point) =>
      point === '*' ? [...counts.values()].reduce((sum, count) => sum + count, 0) : (counts.get(point) ?? 0),
    at,
    throwAt(point, error, options) {
      const fail = (name: string): never => {
        throw error === undefined ? new InjectedFault(name) : error
      }
      at(point, fail, options)
    },
    stopAt(point, options) {
      let arrive = (): void => undefined
      let release = (): void => undefined
      const arrived = new Promise<void>((resolve) => {
        arrive = resolve
      })
      const released = new Promise<void>((resolve) => {
        release = resolve
      })
      releases.push(release)
      const stand = (): Promise<void> => {
        arrive()
        return released
      }
      at(point, stand, options)
      return { reached: arrived, release }
    },
    disarm() {
      disarm()
      for (const release of releases) release()
    },
  }
}

function isDue(rule: Rule, point: string): boolean {
  if (rule.point !== '*' && rule.point !== point) return false
  rule.seen += 1
  return rule.seen >= rule.nth && rule.seen < rule.nth + rule.times
}

/**
 * What a child process does at a fault point: `kill` ends it by SIGKILL; `stop` stops the whole process by SIGSTOP
 * until somebody sends SIGCONT; `throw` throws an {@link InjectedFault}; `hang` waits there for ever while the rest of
 * the process goes on.
 */
export type ChildFault = 'kill' | 'stop' | 'throw' | 'hang'

/**
 * The environment for a child that calls {@link armFromEnvironment} and has a fault at the n-th visit of a point.
 * Default: the first.
 */
export function faultEnvironment(point: string, fault: ChildFault, nth = 1): { readonly REPRISE_FAULT: string } {
  return { REPRISE_FAULT: `${point}:${nth}=${fault}` }
}

/** The environment for a child that is killed by SIGKILL at the n-th visit of a point. Default: the first. */
export function killAt(point: string, nth = 1): { readonly REPRISE_FAULT: string } {
  return faultEnvironment(point, 'kill', nth)
}

const faultText = /^(?<point>[^:=,\s]+)(?::(?<nth>[1-9]\d{0,8}))?=(?<fault>kill|stop|throw|hang)$/

/**
 * Arms the fault points of this process from its environment: REPRISE_FAULT is `point=fault` or `point:n=fault`,
 * several of them separated by commas. Returns undefined if the variable is not set; refuses what it cannot read with
 * `ARGUMENT_INVALID`. Before a fault happens, the process writes a line `reprise-fault <point>:<n>=<fault>` to stderr,
 * so that the parent can wait for it.
 */
export function armFromEnvironment(
  setting: string | undefined = process.env['REPRISE_FAULT'],
): FaultPoints | undefined {
  if (setting === undefined || setting === '') return undefined
  const parsed = setting.split(',').map((part, index) => {
    const { point, nth = '1', fault } = faultText.exec(part.trim())?.groups ?? {}
    if (point !== undefined && fault !== undefined) return { point, nth: Number(nth), fault: fault as ChildFault }
    throw new RepriseError(
      'ARGUMENT_INVALID',
      `Part ${index + 1} of REPRISE_FAULT is not point:n=kill|stop|throw|hang.`,
    )
  })
  const points = faultPoints()
  for (const { point, nth, fault } of parsed) {
    const work = (name: string): void | Promise<void> => {
      writeSync(2, `reprise-fault ${name}:${nth}=${fault}\n`)
      return inThisProcess[fault](name)
    }
    points.at(point, work, { nth })
  }
  return points
}

const inThisProcess: Readonly<Record<ChildFault, (point: string) => void | Promise<void>>> = {
  kill() {
    process.kill(process.pid, 'SIGKILL')
    return forEver()
  },
  stop: () => void process.kill(process.pid, 'SIGSTOP'),
  throw(point) {
    throw new InjectedFault(point)
  },
  hang: () => forEver(),
}

// The timer keeps the process alive; a pending promise alone would let it exit.
function forEver(): Promise<void> {
  const again = (): void => void systemClock.setTimer(3_600_000, again)
  again()
  return new Promise(() => undefined)
}
