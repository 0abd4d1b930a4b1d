// Schedules in this process: duplicates, errors and pauses at fault points, and connections that the proxy cuts.

import { eventLoopTurn, inTime, sleep } from '../../kernel/index.js'
import { type FaultPoints, faultPoints, InjectedFault } from '../fault-points.js'
import type { PostgresProxy } from '../postgres-proxy/proxy.js'
import type { ProofIntent } from './calls.js'
import type { CutMoment, RoundFault, Schedule, Visit } from './schedule.js'

// How long duplicates get to arrive while the first call stands at a point.
const standMs = 30
// How long a call may take to reach the point at which it is to stand. It reached it when nothing was in its way.
const reachMs = 5_000
const lateMs = 50

/** Carries out a schedule on an intent. The result is whether its fault happened. */
export async function perform(schedule: Schedule, intent: ProofIntent, proxy?: PostgresProxy): Promise<boolean> {
  switch (schedule.kind) {
    case 'again':
      await intent.call()
      return true
    case 'together':
      await together(intent, schedule.calls)
      return true
    case 'throw':
      return withPoints((points) => throwAt(points, schedule.at, intent))
    case 'stop':
      return withPoints((points) => standAt(points, schedule.at, intent))
    case 'round':
      return withPoints((points) => round(points, schedule.faults, schedule.calls, intent))
    case 'cut':
      return proxy !== undefined && cut(proxy, schedule.statement, schedule.moment, intent)
    case 'kill':
      return false
  }
}

/** Runs an undisturbed call, and hands out the points that it reached. */
export async function pointsOf(intent: ProofIntent): Promise<readonly string[]> {
  return withPoints(async (points) => {
    await intent.call()
    return [...points.reached]
  })
}

async function withPoints<Value>(work: (points: FaultPoints) => Promise<Value>): Promise<Value> {
  const points = faultPoints()
  try {
    return await work(points)
  } finally {
    points.disarm()
  }
}

async function together(intent: ProofIntent, calls: number): Promise<void> {
  await Promise.all(Array.from({ length: calls }, () => intent.call()))
}

async function throwAt(points: FaultPoints, { point, nth }: Visit, intent: ProofIntent): Promise<boolean> {
  let met = false
  const fail = (name: string): never => {
    met = true
    throw new InjectedFault(name)
  }
  points.at(point, fail, { nth })
  await intent.call()
  return met
}

async function standAt(points: FaultPoints, { point, nth }: Visit, intent: ProofIntent): Promise<boolean> {
  const stood = points.stopAt(point, { nth })
  const first = intent.call()
  const met = await inTime(
    { limitMs: reachMs },
    Promise.race([stood.reached.then(() => true), first.then(() => false)]),
  ).catch(() => false)
  const others = together(intent, 2)
  await sleep(standMs)
  stood.release()
  await Promise.all([first, others])
  return met
}

async function round(
  points: FaultPoints,
  faults: readonly RoundFault[],
  calls: number,
  intent: ProofIntent,
): Promise<boolean> {
  let met = faults.length === 0
  for (const { at, turns } of faults) {
    const act = async (name: string): Promise<void> => {
      met = true
      if (turns === 'throw') throw new InjectedFault(name)
      for (let turn = 0; turn < turns; turn += 1) await eventLoopTurn()
    }
    points.at(at.point, act, { nth: at.nth })
  }
  await together(intent, calls)
  return met
}

async function cut(proxy: PostgresProxy, statement: number, moment: CutMoment, intent: ProofIntent): Promise<boolean> {
  const armed = proxy.arm(
    moment === 'late'
      ? { statement, at: 'before-forward', action: 'late', delayMs: lateMs }
      : { statement, at: moment, action: 'rst' },
  )
  await intent.call()
  await proxy.heal()
  return armed.fired.length > 0
}
