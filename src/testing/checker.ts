// The checker: compares what callers were told with the effects that a ledger counted, and reports every intent where
// the two disagree.
//
// Pure, and in one pass over each. The ledger must be written by the effect itself and read directly: records written
// by Reprise prove nothing about Reprise. The kinds of findings follow Jepsen's total-queue checker (lost, duplicated,
// unexpected), extended by outcomes.

import { RepriseError } from '../kernel/index.js'

/** What a caller was told about one call. */
export type CallVerdict = 'committed' | 'aborted' | 'unknown'

/** One intent, as its callers saw it. */
export interface IntentRecord {
  /** The name of the intent in the ledger and in findings. */
  readonly id: string
  /**
   * The key that its calls carried; all of them together may have one effect. Default: no key, and each call may have
   * its own effect.
   */
  readonly key?: string
  /** What each call was told, in order. For a call whose process died: `unknown`. */
  readonly verdicts: readonly CallVerdict[]
  /** Every result that callers received for it, as text. Default: results are not compared. */
  readonly results?: readonly string[]
}

/** One effect, or one part of an effect, found in the ledger. */
export interface LedgerEffect {
  readonly intent: string
  /** The part of the effect, where an effect has several parts that must appear together. Default `effect`. */
  readonly part?: string
  /** The result according to the effect, as text. Default: not compared. */
  readonly result?: string
}

/** The two sides that are compared. */
export interface CheckedRun {
  /** All intents, each of them once. */
  readonly intents: readonly IntentRecord[]
  readonly effects: readonly LedgerEffect[]
  /** The parts that every effect must have. Default `['effect']`. */
  readonly parts?: readonly string[]
  /**
   * Whether the faults are over and everything had time to settle, so that an unknown outcome counts as a finding.
   * Default false.
   */
  readonly healed?: boolean
}

/**
 * What is wrong with an intent.
 *
 * - `lost`: reported as committed, but the effect is missing;
 * - `duplicate`: more effects than its calls allow;
 * - `phantom`: reported as aborted, but the effect is there;
 * - `unexpected`: an effect without an intent;
 * - `torn`: some parts appear more often than others;
 * - `wrong-result`: under one key, results differ from each other or from the ledger's;
 * - `stuck`: still unknown after everything healed.
 */
export type FindingKind = 'lost' | 'duplicate' | 'phantom' | 'unexpected' | 'torn' | 'wrong-result' | 'stuck'

/** One disagreement between callers and ledger. */
export interface CheckFinding {
  readonly kind: FindingKind
  readonly intent: string
  /** One sentence that describes it. */
  readonly says: string
}

/** The result of a check. */
export interface CheckReport {
  /**
   * Every disagreement: first in the order of the intents, then unexpected effects. Empty means that the run was
   * correct.
   */
  readonly findings: readonly CheckFinding[]
  /**
   * How many intents ended with which last verdict, so that a test can prove that it met the outcomes it was written
   * for.
   */
  readonly endedAs: Readonly<Record<CallVerdict, number>>
  /** How many calls were told `unknown`, including those that a later call settled. */
  readonly unknownCalls: number
}

interface Found {
  readonly parts: Map<string, number>
  readonly results: Set<string>
}

/**
 * Compares what callers were told with the effects that are there. A history that names an intent twice is refused with
 * `ARGUMENT_INVALID`.
 *
 * @example
 * ```ts
 * import { checkEffects } from 'reprise/testing'
 *
 * const { findings } = checkEffects({
 *   intents: [{ id: 'order-1', key: 'k1', verdicts: ['unknown', 'committed'] }],
 *   effects: [{ intent: 'order-1' }, { intent: 'order-1' }],
 * })
 * console.log(findings.map(({ kind, intent }) => `${kind}: ${intent}`))
 * ```
 *
 * ```text
 * [ 'duplicate: order-1' ]
 * ```
 */
export function checkEffects(run: CheckedRun): CheckReport {
  const { intents, effects, parts = ['effect'], healed = false } = run
  const found = countEffects(effects)
  const known = new Set<string>()
  const endedAs: Record<CallVerdict, number> = { committed: 0, aborted: 0, unknown: 0 }
  const findings: CheckFinding[] = []
  let unknownCalls = 0
  for (const intent of intents) {
    if (known.has(intent.id)) throw new RepriseError('ARGUMENT_INVALID', 'The history names an intent twice.')
    known.add(intent.id)
    endedAs[intent.verdicts.at(-1) ?? 'unknown'] += 1
    unknownCalls += intent.verdicts.filter((verdict) => verdict === 'unknown').length
    findings.push(...findingsOf(intent, found.get(intent.id), parts, healed))
  }
  for (const [intent, { parts: counts }] of found) {
    if (known.has(intent)) continue
    const says = `Nobody wanted it, and the ledger holds ${describe(counts)}.`
    findings.push({ kind: 'unexpected', intent, says })
  }
  return { findings, endedAs, unknownCalls }
}

function countEffects(effects: readonly LedgerEffect[]): Map<string, Found> {
  const found = new Map<string, Found>()
  for (const { intent, part = 'effect', result } of effects) {
    const entry = found.get(intent) ?? { parts: new Map<string, number>(), results: new Set<string>() }
    found.set(intent, entry)
    entry.parts.set(part, (entry.parts.get(part) ?? 0) + 1)
    if (result !== undefined) entry.results.add(result)
  }
  return found
}

function findingsOf(
  intent: IntentRecord,
  found: Found | undefined,
  parts: readonly string[],
  healed: boolean,
): CheckFinding[] {
  const counts = new Map([...parts.map((part) => [part, 0] as const), ...(found?.parts ?? [])])
  const most = Math.max(0, ...counts.values())
  const least = Math.min(...counts.values())
  const { atLeast, atMost } = allowed(intent)
  const findings: CheckFinding[] = []
  const add = (kind: FindingKind, says: string): void => void findings.push({ kind, intent: intent.id, says })
  const told = `Its calls were told ${intent.verdicts.join(', ') || 'nothing'}`
  if (most !== least) add('torn', `The ledger holds ${describe(counts)}.`)
  if (most < atLeast) add('lost', `${told}, and the ledger holds ${describe(counts)}.`)
  if (most > atMost) add(atMost === 0 ? 'phantom' : 'duplicate', `${told}, and the ledger holds ${describe(counts)}.`)
  const results = new Set([...(intent.results ?? []), ...(found?.results ?? [])])
  if (intent.key !== undefined && results.size > 1)
    add('wrong-result', `There are ${results.size} different results under one key.`)
  if (healed && (intent.verdicts.at(-1) ?? 'unknown') === 'unknown') add('stuck', `${told}, and nothing settled it.`)
  return findings
}

/** How many effects an intent may have, from what its calls were told. */
function allowed({ key, verdicts }: IntentRecord): { readonly atLeast: number; readonly atMost: number } {
  const committed = verdicts.filter((verdict) => verdict === 'committed').length
  if (key === undefined) {
    const maybe = verdicts.filter((verdict) => verdict === 'unknown').length
    return { atLeast: committed, atMost: committed + (verdicts.length === 0 ? 1 : maybe) }
  }
  // Under a key, the last call decides: if it was told `aborted`, none of the calls before it can have had an effect.
  const atMost = committed === 0 && verdicts.at(-1) === 'aborted' ? 0 : 1
  return { atLeast: Math.min(committed, 1), atMost }
}

function describe(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([part, count]) => `${count} × ${part}`).join(', ') || 'nothing'
}
