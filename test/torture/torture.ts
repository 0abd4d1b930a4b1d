// One part on one engine: rounds of work under faults, each followed by quiet and judgement. The first round that shows
// a violation is the last.

import { setTimeout as wait } from 'node:timers/promises'
import { seededRandom } from '../../src/kernel/index.js'
import { drawMs, type EngineFault, type TortureEngine } from './engines/engine.js'
import { startPostgresEngine } from './engines/postgres.js'
import { startSqliteEngine } from './engines/sqlite.js'
import type { Part, PartRun } from './part.js'
import { type Report, reportOf, type Violation } from './report.js'
import { Workers } from './workers.js'

/** The engines, by name. */
const engines: Readonly<Record<string, (tables: readonly string[]) => Promise<TortureEngine>>> = {
  postgres: (tables) => startPostgresEngine(tables, false),
  pgbouncer: (tables) => startPostgresEngine(tables, true),
  sqlite: startSqliteEngine,
}

/** How a run is. */
export interface TortureOptions {
  readonly part: Part
  readonly engine: string
  /** How long it works, in seconds; the last judgement comes after that. */
  readonly seconds: number
  /** Works until there were as many intents instead. Default: by time. */
  readonly intents?: number | undefined
  /** How many keys messages have. Default: the part's. */
  readonly keys?: number | undefined
  readonly seed: string
  /** The folder with the bundled workers. */
  readonly folder: string
  /** The name of a bug to plant. Default: none. */
  readonly plant?: string | undefined
  /** Told how far it is. */
  readonly onProgress: (line: string) => void
}

/** What became of a run. */
export interface Tortured {
  readonly report: Report
  readonly violations: readonly Violation[]
}

/** How hard a run is struck, for how long before it is judged, and by how many workers it is worked on. */
interface Pace {
  readonly workers: number
  readonly roundMs: number
  /** The time between two faults, from and to, in ms. */
  readonly betweenMs: readonly [number, number]
  /** How often a worker passes the point at which it dies, as a multiple. */
  readonly life: number
}

const byTime: Pace = { workers: 5, roundMs: 8_000, betweenMs: [50, 300], life: 1 }
/** A load of so many intents is to be worked through: workers live long enough to do some of it. */
const byLoad: Pace = { workers: 4, roundMs: 40_000, betweenMs: [1_500, 5_000], life: 300 }
/** A round goes on until this many faults have happened: one without any shows nothing. */
const leastFaults = 4
/** How much longer it may take for that, on a machine that has no time, in ms. */
const mostExtraMs = 60_000
const progressMs = 5_000

/** Runs a part on an engine. */
export async function torture(options: TortureOptions): Promise<Tortured> {
  const { part, engine: name, seconds, seed, folder, plant, onProgress } = options
  const { leaseMs } = part
  const random = seededRandom(`${seed}/${part.name}/${name}`)
  const engine = await (engines[name] as (typeof engines)[string])(part.tables)
  const faults = new Map<string, number>()
  const onFault = (kind: string): void => void faults.set(kind, (faults.get(kind) ?? 0) + 1)
  const points = [...part.points, ...engine.points]
  const wanted = options.intents
  const { workers: workerCount, roundMs, betweenMs, life } = wanted === undefined ? byTime : byLoad
  const workers = new Workers({ script: `${folder}/${part.worker}.js`, random, points, leaseMs, life, onFault })
  const run = await part.open({ engine, workers, random, keys: options.keys, isLoad: wanted !== undefined })
  const startedMs = performance.now()
  const passedMs = (): number => performance.now() - startedMs
  const tell = (): void => {
    const struck = [...faults.values()].reduce((sum, count) => sum + count, 0)
    onProgress(`${name}: ${Math.round(passedMs() / 1_000)} s, ${run.intents} intents, ${struck} faults`)
  }
  const progress = setInterval(tell, progressMs)
  const violations: Violation[] = []
  try {
    const told = { ...run.told, address: engine.address, leaseMs, seed, plant, calm: false }
    const struck = [...workerFaults(workers), ...engine.faults, ...(run.faults ?? [])]
    const leftMs = (): number => {
      if (wanted === undefined) return seconds * 1_000 - passedMs()
      return run.intents < wanted ? roundMs : 0
    }
    while (violations.length === 0 && leftMs() > 0) {
      workers.fateful = true
      workers.start(workerCount, told)
      await underFaults(run, struck, { random, limitMs: Math.min(roundMs, leftMs()), betweenMs, onFault })
      // Fresh processes judge: what a worker remembers cannot hide what the store has forgotten.
      await engine.heal()
      workers.fateful = false
      workers.start(workerCount, { ...told, calm: true })
      await workers.killAll()
      violations.push(...(await run.judge()))
    }
    tell()
  } finally {
    clearInterval(progress)
    await workers.close()
    await run.close()
    await engine.dispose()
  }
  for (const [what, count] of Object.entries(run.counted ?? {})) if (count > 0) faults.set(what, count)
  const missed = points.filter((point) => !workers.reached.has(point))
  return {
    report: reportOf({ part: part.name, engine: name, intents: run.intents, faults, violations, missed, seed }),
    violations,
  }
}

function workerFaults(workers: Workers): readonly EngineFault[] {
  return [
    { kind: 'kill', weight: 6, strike: () => workers.kill() },
    { kind: 'stop', weight: 7, strike: () => workers.stop() },
    { kind: 'kill-all', weight: 1, strike: () => workers.killAll() },
  ]
}

interface Striking {
  readonly random: ReturnType<typeof seededRandom>
  readonly limitMs: number
  readonly betweenMs: readonly [number, number]
  readonly onFault: (kind: string) => void
}

/** Lets the part work for a while, and strikes at moments that are drawn. */
async function underFaults(run: PartRun, faults: readonly EngineFault[], striking: Striking): Promise<void> {
  const { random, limitMs, betweenMs, onFault } = striking
  const stop = new AbortController()
  const endMs = performance.now() + limitMs
  const work = run.work(stop.signal)
  const strikes = (async () => {
    let struck = 0
    const under: Promise<void>[] = []
    const goesOn = (): boolean => {
      const leftMs = endMs - performance.now()
      return !stop.signal.aborted && (leftMs > 0 || (struck < leastFaults && leftMs > -mostExtraMs))
    }
    // What a round begins with has a moment without faults.
    await wait(300)
    while (goesOn()) {
      await wait(drawMs(random, ...betweenMs))
      const { kind, alone, strike } = weighted(random.next(), faults)
      const striking = strike(random).then((happened) => {
        if (!happened) return
        struck += 1
        onFault(kind)
      })
      under.push(striking)
      if (alone) await striking
    }
    await Promise.all(under)
    stop.abort()
  })()
  await Promise.all([work, strikes]).finally(() => stop.abort())
}

function weighted(drawn: number, faults: readonly EngineFault[]): EngineFault {
  let left = drawn * faults.reduce((sum, { weight }) => sum + weight, 0)
  for (const fault of faults) {
    left -= fault.weight
    if (left < 0) return fault
  }
  return faults[0] as EngineFault
}
