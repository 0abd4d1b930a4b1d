// What a repeat says, as a pure function.

import { defined, type ErrorCode, isRepriseError } from '../kernel/index.js'
import type { Repeat, Repeated } from './contract.js'
import type { DrillEvent, DrillSkippedEvent, DrillViolationEvent } from './events.js'

/** What was seen of a repeat. */
export interface SeenRepeat {
  /** Whether it came as far as the body, which was not run. */
  readonly reached: boolean
  /** How it ended. */
  readonly ended: Repeated | { readonly error: unknown }
  readonly effects: DrillViolationEvent['effects'] | undefined
}

/** What that means. */
export type Verdict =
  | { readonly is: 'agreed' }
  | { readonly is: 'skipped'; readonly because: DrillSkippedEvent['because']; readonly error: unknown }
  | { readonly is: 'violation'; readonly violation: Omit<DrillViolationEvent, keyof DrillEvent> }

/** Codes that speak of the call. Others speak of the store, or of the moment, and say nothing. */
const telling: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'MARKER_INVALID',
  'MESSAGE_MISMATCH',
  'OPERATION_MISMATCH',
  'OPERATION_MODE_CHANGED',
  'OUTCOME_UNREADABLE',
])

const suspects: Readonly<Record<DrillEvent['kind'], string>> = {
  operation: 'Look for a key or a scope that is made anew at each call, and for records that somebody deletes.',
  route: 'Look for a principal that is made anew at each request, and for records that somebody deletes.',
  consumer: 'Look for who deletes what is remembered of processed messages.',
}

/** What a repeat says. The gravest of its differences counts. */
export function verdictOn({ call, first }: Pick<Repeat, 'call' | 'first'>, seen: SeenRepeat): Verdict {
  const { reached, ended, effects } = seen
  const violation = (code: DrillViolationEvent['code'], what: string, refusal?: string): Verdict => {
    const message = `A repeat on purpose of the ${call.kind} ${call.name} in the domain ${call.domain} ${what}`
    return { is: 'violation', violation: { code, message, ...defined({ refusal, effects }) } }
  }
  if (reached) return violation('DRILL_EXECUTED', `was not recognised, and would have run. ${suspects[call.kind]}`)
  if (effects !== undefined && (effects.after !== effects.before || effects.after > 1)) {
    return violation('DRILL_EFFECTS', `found ${effects.before} effects before it and ${effects.after} after it.`)
  }
  if ('error' in ended) {
    const { error } = ended
    if (isRepriseError(error, 'OUTCOME_TOO_LARGE')) return { is: 'skipped', because: 'not-kept', error }
    if (!isRepriseError(error) || !telling.has(error.code)) return { is: 'skipped', because: 'unanswered', error }
    const why = error.code === 'OPERATION_MISMATCH' ? ' Look for content that is different at each call.' : ''
    return violation('DRILL_REFUSED', `was refused with ${error.code}.${why}`, error.code)
  }
  if ('refused' in ended) return violation('DRILL_REFUSED', `was refused with ${ended.refused}.`, ended.refused)
  return ended.told === first ? { is: 'agreed' } : violation('DRILL_DIFFERENT', 'was answered differently.')
}
