// `prove`: runs somebody's own operation, route or consumer under the faults of the kit, and counts its effects.

import {
  type Deadline,
  type Duration,
  deadlineAfter,
  defined,
  demandKnown,
  demandWhole,
  durationMs,
  RepriseError,
  sleep,
  uuidv4,
} from '../../kernel/index.js'
import { type PostgresProxy, postgresProxy } from '../postgres-proxy/proxy.js'
import { hear, ProofIntent } from './calls.js'
import { perform, pointsOf } from './in-process.js'
import { killedAt, type ProcessPlace, visitedInProcess } from './processes.js'
import {
  drawDefaults,
  judge,
  type ProofDraw,
  ProofFailed,
  type ProofFinding,
  type ProofLine,
  type ProofReport,
  reportOf,
} from './report.js'
import {
  cutSchedules,
  duplicateSchedules,
  roundSchedules,
  type Schedule,
  visitSchedules,
  visitsOf,
} from './schedule.js'
import { closeWorld, type ProofSubject } from './subject.js'

/** How something is proven. */
export interface ProveOptions<Input, World> extends Omit<ProofSubject<Input, World>, 'operation'> {
  /** Counts the effects of an intent where they are: in the table, at the receiver. Not by what Reprise recorded. */
  readonly effects: (input: Input, world: World) => number | PromiseLike<number>
  /** How many calls of one intent are made at once. Default 5. */
  readonly duplicates?: number
  /** How many random rounds follow those that are enumerated. Default 20. */
  readonly rounds?: number
  /** Draws the random rounds. Default: drawn anew, and told in the report. */
  readonly seed?: number | string
  /** Runs one schedule alone, by the name that a report gave. Default: all of them. */
  readonly only?: string
  /** How long an intent may go without an answer after its fault, such as a lease. Default 10 s. */
  readonly settleWithin?: Duration
  /**
   * The URL of a PostgreSQL on which the world may be opened. Its connections are cut at every statement that a call
   * sends. Default: none, no connection is cut.
   */
  readonly postgres?: string
  /**
   * The module that exports `operation`, `world` and `input`, as a URL. It is loaded in processes of their own, which
   * are killed at every fault point. Default: none, no process is killed.
   */
  readonly processes?: string | URL
  /** Is told of each schedule once it was run: progress. Default: nobody is. */
  readonly onSchedule?: (line: ProofLine) => void
}

const optionNames = Object.keys({
  world: 1,
  input: 1,
  effects: 1,
  duplicates: 1,
  rounds: 1,
  seed: 1,
  only: 1,
  settleWithin: 1,
  postgres: 1,
  processes: 1,
  onSchedule: 1,
} satisfies Record<keyof ProveOptions<unknown, unknown>, 1>)

/**
 * Proves that a call has its effect once: runs it with duplicates at once and late, with an error and with duplicates
 * at every fault point that it passes, and in random rounds; with `postgres` under cut connections, with `processes`
 * under kills. Rejects with a {@link ProofFailed} that names every finding and its seed.
 *
 * @example
 * ```ts
 * import { type Key, scope } from 'reprise'
 * import { memory } from 'reprise/stores/memory'
 * import { prove } from 'reprise/testing'
 *
 * const db = memory({ name: 'shop' })
 * db.table('payment', { unique: [['order']] })
 * const pay = db.operation('pay', {
 *   scope: () => scope('shop'),
 *   key: (order: string) => order as Key,
 *   window: '24h',
 *   run: async (tx, order) => tx.insertOnce('payment', { order }, ['order']),
 * })
 *
 * const report = await prove(pay, {
 *   input: (id) => `order-${id}`,
 *   effects: (order) => db.rows('payment').filter((row) => row['order'] === order).length,
 * })
 * console.log(report.findings)
 * ```
 *
 * ```text
 * []
 * ```
 */
export async function prove<Input, World = undefined>(
  operation: (input: Input, world: World) => unknown,
  options: ProveOptions<Input, World>,
): Promise<ProofReport> {
  checkOptions(operation, options)
  const { postgres, world: open } = options
  const proxy = postgres === undefined ? undefined : await proxyBefore(postgres)
  try {
    const world = (await open?.(defined({ databaseUrl: proxy?.databaseUrl }))) as World
    try {
      return await new Proof(operation, options, world, proxy?.proxy).run()
    } finally {
      await closeWorld(world)
    }
  } finally {
    await proxy?.proxy.close()
  }
}

class Proof<Input, World> {
  readonly #operation: (input: Input, world: World) => unknown
  readonly #options: ProveOptions<Input, World>
  readonly #world: World
  readonly #proxy: PostgresProxy | undefined
  readonly #place: ProcessPlace | undefined
  readonly #settleMs: number
  readonly #lines: ProofLine[] = []
  readonly #findings: ProofFinding[] = []
  readonly #untried: string[] = []
  // Ids of one run are like those of no other, so that a store may be used again.
  readonly #run = uuidv4().slice(0, 8)
  #intents = 0

  constructor(
    operation: (input: Input, world: World) => unknown,
    options: ProveOptions<Input, World>,
    world: World,
    proxy: PostgresProxy | undefined,
  ) {
    this.#operation = operation
    this.#options = options
    this.#world = world
    this.#proxy = proxy
    this.#settleMs = durationMs(options.settleWithin ?? '10s')
    const { processes, postgres } = options
    this.#place = processes === undefined ? undefined : { module: String(processes), databaseUrl: postgres }
  }

  async run(): Promise<ProofReport> {
    const { only, seed = uuidv4().slice(0, 8) } = this.#options
    const draw: ProofDraw = { ...callsOf(this.#options), seed }
    const schedules = await this.#schedules(draw)
    const chosen = only === undefined ? schedules : schedules.filter(({ name }) => name === only)
    if (chosen.length === 0) {
      const names = schedules.map(({ name }) => name).join('; ')
      throw invalid('only', `It names no schedule. There are: ${names}.`)
    }
    for (const schedule of chosen) await this.#schedule(schedule)
    const report = reportOf(draw, this.#lines, this.#findings, this.#untried)
    if (this.#findings.length > 0) throw new ProofFailed(report)
    // Most tests do not look at the report, and nothing was found: it has to be seen all the same.
    for (const what of this.#untried)
      process.emitWarning(`A proof is not complete. ${what}`, { type: 'RepriseWarning', code: 'PROOF_UNTRIED' })
    return report
  }

  // What a call reaches and sends is learned from undisturbed ones: the second, since the first opens connections.
  async #schedules({ seed, rounds, duplicates }: ProofDraw): Promise<readonly Schedule[]> {
    await this.#undisturbed(this.#intent())
    const learned = this.#intent()
    const visits = visitsOf(await pointsOf(learned))
    const cut = this.#intent()
    const before = this.#proxy?.statements.length ?? 0
    await this.#undisturbed(cut)
    const texts = this.#proxy?.statements.slice(before) ?? []
    const inProcesses = this.#place === undefined ? [] : await visitedInProcess(this.#place, this.#nextId())
    if (visits.length === 0)
      this.#untried.push('A call passes no fault point in this process: only duplicates were made.')
    if (this.#proxy !== undefined && texts.length === 0)
      this.#untried.push('A call sends no statement through the databaseUrl of its world: no connection was cut.')
    if (this.#place !== undefined && inProcesses.length === 0)
      this.#untried.push('A call passes no fault point in a process of its own: none was killed.')
    return [
      ...duplicateSchedules(duplicates),
      ...visitSchedules('throw', visits),
      ...visitSchedules('stop', visits),
      ...cutSchedules(texts),
      ...visitSchedules('kill', visitsOf(inProcesses)),
      ...roundSchedules(seed, rounds, duplicates, visits),
    ]
  }

  async #undisturbed(intent: ProofIntent): Promise<void> {
    const { verdict, says } = await intent.call()
    if (verdict === 'committed') return
    throw new RepriseError('ARGUMENT_INVALID', `A call without any fault failed, so nothing can be proven: ${says}`)
  }

  async #schedule(schedule: Schedule): Promise<void> {
    const intent = this.#intent()
    const met =
      schedule.kind === 'kill' && this.#place !== undefined
        ? await killedAt(this.#place, schedule.at, intent)
        : await perform(schedule, intent, this.#proxy)
    await intent.untilAnswered()
    // Whoever was answered calls no more: what is missing now is lost, though the late duplicate would make up for it.
    const early = judge(schedule.name, intent, await this.#count(intent), met, false)
    await intent.call()
    const { line, findings } = judge(schedule.name, intent, await this.#count(intent), met, true)
    this.#lines.push(line)
    this.#findings.push(...(early.findings.length > 0 ? early.findings : findings))
    this.#options.onSchedule?.(line)
  }

  // The first tries may take connections of the pool that were cut.
  async #count({ id }: ProofIntent): Promise<number> {
    const { effects, input } = this.#options
    for (let tries = 1; ; tries += 1) {
      try {
        const count = await effects(input(id), this.#world)
        if (Number.isSafeInteger(count) && count >= 0) return count
      } catch (error) {
        if (tries < 5) {
          await sleep(20 * tries)
          continue
        }
        throw invalid('effects', 'It failed five times in a row.', error)
      }
      throw invalid('effects', 'It gives a whole number from 0.')
    }
  }

  #nextId(): string {
    this.#intents += 1
    return `${this.#run}-${this.#intents}`
  }

  #intent(): ProofIntent {
    const { input } = this.#options
    const deadline: Deadline = deadlineAfter(this.#settleMs)
    // A call of an operation takes options in second place: where there is no world, nothing is handed over.
    const rest = (this.#world === undefined ? [] : [this.#world]) as [World]
    const call = (id: string) => hear(() => this.#operation(input(id), ...rest))
    return new ProofIntent(this.#nextId(), call, deadline)
  }
}

async function proxyBefore(postgres: string): Promise<{ readonly proxy: PostgresProxy; readonly databaseUrl: string }> {
  const url = new URL(postgres)
  const proxy = await postgresProxy({ upstream: { host: url.hostname || '127.0.0.1', port: Number(url.port || 5432) } })
  url.hostname = proxy.host
  url.port = String(proxy.port)
  return { proxy, databaseUrl: url.href }
}

function callsOf({
  rounds = drawDefaults.rounds,
  duplicates = drawDefaults.duplicates,
}: Pick<ProveOptions<never, unknown>, 'rounds' | 'duplicates'>): Omit<ProofDraw, 'seed'> {
  return { rounds, duplicates }
}

function checkOptions(
  operation: unknown,
  options: Omit<ProveOptions<never, unknown>, 'input' | 'effects' | 'world'>,
): void {
  if (typeof operation !== 'function') throw new RepriseError('ARGUMENT_INVALID', 'operation: must be a function.')
  // A module that is handed over whole has an operation too.
  demandKnown(options, [...optionNames, 'operation'], 'options')
  const functions = options as { readonly input?: unknown; readonly effects?: unknown; readonly world?: unknown }
  if (typeof functions.input !== 'function') throw invalid('input', 'It is a function.')
  if (typeof functions.effects !== 'function') throw invalid('effects', 'It is a function.')
  if (!['function', 'undefined'].includes(typeof functions.world)) throw invalid('world', 'It is a function.')
  const { duplicates, rounds } = callsOf(options)
  const { settleWithin = '10s', postgres } = options
  demandWhole(duplicates, 2, 1_000, (why) => invalid('duplicates', why))
  demandWhole(rounds, 0, 100_000, (why) => invalid('rounds', why))
  durationMs(settleWithin)
  if (postgres !== undefined && !URL.canParse(postgres)) {
    throw invalid('postgres', 'It is a URL such as postgres://user@host:5432/database.')
  }
}

function invalid(option: string, why: string, cause?: unknown): RepriseError {
  return new RepriseError('ARGUMENT_INVALID', `The option ${option} is not valid. ${why}`, {
    details: { option },
    cause,
  })
}
