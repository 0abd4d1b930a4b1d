// Draws calls, repeats them after their answer, and tells what came of it.

import {
  type Chance,
  defined,
  demandKnown,
  demandWhole,
  detached,
  durationMs,
  environmentVariable,
  maxDurationMs,
  RepriseError,
  type ScopeKind,
  scopeKind,
  systemChance,
  systemClock,
  warn,
} from '../kernel/index.js'
import type { Drill, DrillCounts, DrilledCall, DrillOptions, Repeat } from './contract.js'
import {
  type DrillEvent,
  type DrillSkippedEvent,
  type DrillViolationEvent,
  drillAgreed,
  drillSkipped,
  drillViolation,
} from './events.js'
import { type SeenRepeat, verdictOn } from './verdict.js'

const optionNames: readonly (keyof DrillOptions)[] = [
  'oneIn',
  'environment',
  'after',
  'atOnce',
  'effects',
  'onViolation',
  'random',
]

/**
 * Duplicates on purpose, for staging: of the calls of operations and routes and the deliveries to consumers that
 * succeeded, one in `oneIn` is made again as if its caller had repeated it. The repeat has to get the first answer; one
 * that would run the body is stopped before it does, rolled back, and told. No caller waits for it.
 *
 * Refuses with DRILL_IN_PRODUCTION where a flag says production, and other options with ARGUMENT_INVALID.
 *
 * @example
 * ```ts
 * import { drill } from 'reprise/drill'
 * import { sqlite } from 'reprise/stores/sqlite'
 *
 * const db = sqlite({ name: 'shop', file: 'shop.db', drill: drill({ oneIn: 1000 }) })
 * ```
 */
export function drill(options: DrillOptions): Drill {
  demandKnown(options, optionNames, 'options')
  const { effects, onViolation } = options
  const oneIn = demandWhole(options.oneIn, 0, 1_000_000_000, (why) => invalid('oneIn', why))
  const atOnce = demandWhole(options.atOnce ?? 8, 1, 1_000, (why) => invalid('atOnce', why))
  const afterMs = durationMs(options.after ?? '1s', { option: 'after' })
  for (const [option, given] of Object.entries({ effects, onViolation })) {
    if (given !== undefined && typeof given !== 'function') throw invalid(option, 'It is a function.')
  }
  if (oneIn > 0) refuseProduction(options.environment)
  const random = options.random ?? systemChance
  return new RunningDrill({ oneIn, atOnce, afterMs, random, ...defined({ effects, onViolation }) })
}

function invalid(option: string, why: string): RepriseError {
  return new RepriseError('ARGUMENT_INVALID', `The option ${option} is not valid. ${why}`, { details: { option } })
}

// What was said on purpose counts. NODE_ENV is `production` in most stagings too, so it counts where nothing was said.
function refuseProduction(environment: string | undefined): void {
  const said = [environment, environmentVariable('REPRISE_ENVIRONMENT')].map((flag) => String(flag ?? '').trim())
  const flags = said.some((flag) => flag !== '') ? said : [environmentVariable('NODE_ENV') ?? '']
  if (!flags.some((flag) => /^(?:prod|live)/i.test(flag))) return
  throw new RepriseError(
    'DRILL_IN_PRODUCTION',
    'A drill repeats calls on purpose, and does not start in production. Where this is none, say so with the option environment or the variable REPRISE_ENVIRONMENT.',
  )
}

/** The repeat that is under way around this code. */
interface Running {
  readonly owner: object
  reached: boolean
}

const running: ScopeKind<Running> = /* @__PURE__ */ scopeKind<Running>('reprise.drill')

interface Settings extends Pick<DrillOptions, 'oneIn' | 'effects' | 'onViolation'> {
  readonly atOnce: number
  readonly afterMs: number
  readonly random: Chance
}

class RunningDrill implements Drill {
  readonly oneIn: number
  readonly #settings: Settings
  readonly #open = new Set<Promise<void>>()
  #agreed = 0
  #violations = 0
  readonly #skipped: Record<DrillSkippedEvent['because'], number> = {
    unkeyed: 0,
    'no-outcome': 0,
    window: 0,
    'not-kept': 0,
    busy: 0,
    unanswered: 0,
    uncounted: 0,
  }

  constructor(settings: Settings) {
    this.oneIn = settings.oneIn
    this.#settings = settings
  }

  get counts(): DrillCounts {
    return { agreed: this.#agreed, violations: this.#violations, skipped: { ...this.#skipped } }
  }

  async settled(): Promise<DrillCounts> {
    // The timers of repeats do not keep a process alive. One that waits for them is to stay.
    const release = systemClock.setTimer(maxDurationMs, () => undefined)
    try {
      while (this.#open.size > 0) await Promise.all(this.#open)
    } finally {
      release()
    }
    return this.counts
  }

  draws(): boolean {
    const { oneIn, random } = this.#settings
    return oneIn > 0 && running.current() === undefined && random.next() * oneIn < 1
  }

  skip({ kind, domain, name }: DrillEvent, because: DrillSkippedEvent['because'], error?: unknown): void {
    this.#skipped[because] += 1
    if (drillSkipped.hasSubscribers) drillSkipped.publish({ kind, domain, name, because, ...defined({ error }) })
  }

  reached(owner: object): Error | undefined {
    const around = running.current()
    if (around?.owner !== owner) return undefined
    around.reached = true
    return new Error('A repeat on purpose came as far as the body, and was stopped there.')
  }

  repeat(repeat: Repeat): void {
    const { atOnce, afterMs } = this.#settings
    const { call, clock } = repeat
    const isFull = this.#open.size >= atOnce
    if (isFull || mayBeForgotten(repeat, afterMs)) {
      this.skip(call, isFull ? 'busy' : 'window')
      return
    }
    const sinceMs = clock.monotonicMs()
    const due = new Promise<void>((resolve) => void clock.setTimer(afterMs, resolve, { keepAlive: false }))
    // Neither deadline nor transaction of the first call belongs to the repeat.
    const open = due.then(() => detached(() => this.#carryOut(repeat, sinceMs))).finally(() => this.#open.delete(open))
    this.#open.add(open)
  }

  // Never rejected.
  async #carryOut(repeat: Repeat, sinceMs: number): Promise<void> {
    const { call, clock, owner } = repeat
    const around: Running = { owner, reached: false }
    let seen: SeenRepeat
    try {
      seen = await running.run(around, () => this.#again(repeat, around))
    } catch (error) {
      return this.skip(call, 'uncounted', error)
    }
    // A process that stood still for so long may have found what was rightly forgotten.
    if (mayBeForgotten(repeat, clock.monotonicMs() - sinceMs)) return this.skip(call, 'window')
    const verdict = verdictOn(repeat, seen)
    if (verdict.is === 'skipped') return this.skip(call, verdict.because, verdict.error)
    const { kind, domain, name } = call
    if (verdict.is === 'agreed') {
      this.#agreed += 1
      if (drillAgreed.hasSubscribers) drillAgreed.publish({ kind, domain, name })
      return
    }
    this.#violations += 1
    const violation = { kind, domain, name, ...verdict.violation }
    if (drillViolation.hasSubscribers) drillViolation.publish(violation)
    await this.#tell(violation, call)
  }

  async #again({ call, again }: Repeat, around: Running): Promise<SeenRepeat> {
    const { effects: count } = this.#settings
    const before = await count?.(call)
    let ended: SeenRepeat['ended']
    try {
      ended = await again()
    } catch (error) {
      ended = { error }
    }
    const after = await count?.(call)
    const effects = before === undefined || after === undefined ? undefined : { before, after }
    return { reached: around.reached, ended, effects }
  }

  async #tell(violation: DrillViolationEvent, call: DrilledCall): Promise<void> {
    const { onViolation } = this.#settings
    if (onViolation === undefined) return warn(violation.code, violation.message)
    try {
      await onViolation(violation, call)
    } catch (error) {
      const thrown = error instanceof Error ? error.name : typeof error
      warn(violation.code, `${violation.message} onViolation of the drill threw (${thrown}).`)
    }
  }
}

// Past half of its window a record may be gone by the store's clock, or be purged in a moment.
function mayBeForgotten({ rememberedMs }: Repeat, agoMs: number): boolean {
  return agoMs * 2 >= rememberedMs
}
