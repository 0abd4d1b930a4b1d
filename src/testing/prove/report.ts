// What a proof found, as data and as text.

import { checkEffects, type FindingKind } from '../checker.js'
import type { ProofIntent } from './calls.js'

/** What is wrong with one intent. */
export interface ProofFinding {
  /** The name of the schedule; `only` runs it alone. */
  readonly schedule: string
  readonly kind: FindingKind
  /** One sentence that describes it. */
  readonly says: string
}

/** One schedule that was run. */
export interface ProofLine {
  readonly schedule: string
  /** Whether its fault happened. A schedule without a fault is always met. */
  readonly met: boolean
  readonly calls: number
  readonly effects: number
  /** Whether it ended as an unknown outcome that a person settles; an effect is there at most once. */
  readonly held: boolean
}

/** What the schedules of a proof are drawn by: with the same three they are the same. */
export interface ProofDraw {
  /** Draws the random rounds: the same seed draws the same ones. */
  readonly seed: number | string
  /** How many rounds were drawn. */
  readonly rounds: number
  /** How many calls of one intent were made at once. */
  readonly duplicates: number
}

/** What a proof ran, counted and found. */
export interface ProofReport extends ProofDraw {
  readonly lines: readonly ProofLine[]
  readonly findings: readonly ProofFinding[]
  /** The calls that were made, and the effects that were counted. */
  readonly calls: number
  readonly effects: number
  /** The schedules whose fault did not happen: nothing is shown by them. */
  readonly missed: readonly string[]
  /** What could not be tried at all, such as faults where a call passes no fault point: nothing is shown about it. */
  readonly untried: readonly string[]
  /** The report as text: a line for each schedule, with what was counted. */
  readonly text: string
}

/** What a proof is drawn by where its options do not say. */
export const drawDefaults = { rounds: 20, duplicates: 5 } as const

/** A proof that found something. Its message has every finding, and how to see it again. */
export class ProofFailed extends Error {
  override readonly name: string = 'ProofFailed'
  readonly report: ProofReport

  constructor(report: ProofReport) {
    const { findings, seed, rounds, duplicates, lines } = report
    const shown = findings.map(({ schedule, kind, says }) => `- ${schedule}: ${kind}. ${says}`)
    const options = [
      `seed: ${JSON.stringify(seed)}`,
      ...(rounds === drawDefaults.rounds ? [] : [`rounds: ${rounds}`]),
      ...(duplicates === drawDefaults.duplicates ? [] : [`duplicates: ${duplicates}`]),
      `only: ${JSON.stringify(findings[0]?.schedule)}`,
    ]
    const again = `Again, this one alone: prove(…, { ${options.join(', ')} }).`
    super(`${findings.length} findings in ${lines.length} schedules.\n${shown.join('\n')}\n${again}`)
    this.report = report
  }
}

/**
 * Compares what the calls of an intent were told by now with the effects that are there by now. At the `end` the last
 * call has to be answered.
 */
export function judge(
  schedule: string,
  { id, heard }: ProofIntent,
  effects: number,
  met: boolean,
  end: boolean,
): { readonly line: ProofLine; readonly findings: readonly ProofFinding[] } {
  const held = heard.at(-1)?.held === true
  const { findings } = checkEffects({
    intents: [
      {
        id,
        key: id,
        verdicts: heard.map(({ verdict }) => verdict),
        results: heard.flatMap(({ result }) => result ?? []),
      },
    ],
    effects: Array.from({ length: effects }, () => ({ intent: id })),
    healed: end && !held,
  })
  const last = heard.findLast(({ says }) => says !== undefined)?.says
  return {
    line: { schedule, met, calls: heard.length, effects, held },
    findings: findings.map(({ kind, says }) => ({
      schedule,
      kind,
      says: kind === 'stuck' && last !== undefined ? `${says} The last error: ${last}` : says,
    })),
  }
}

/** The report of all schedules. */
export function reportOf(
  draw: ProofDraw,
  lines: readonly ProofLine[],
  findings: readonly ProofFinding[],
  untried: readonly string[] = [],
): ProofReport {
  const calls = sum(lines.map((line) => line.calls))
  const effects = sum(lines.map((line) => line.effects))
  const missed = lines.filter(({ met }) => !met).map(({ schedule }) => schedule)
  const rows = lines.map(({ schedule, met, calls: made, effects: counted, held }) => {
    const wrong = findings.filter((finding) => finding.schedule === schedule).map(({ kind }) => kind)
    const end = wrong.length > 0 ? wrong.join(', ') : held ? 'held as unknown' : met ? 'ok' : 'not met'
    return `${schedule}: ${count(made, 'call')}, ${count(counted, 'effect')}, ${end}`
  })
  const first = `${lines.length} schedules, ${count(calls, 'call')}, ${count(effects, 'effect')}, ${count(findings.length, 'finding')}, seed ${draw.seed}`
  const text = [first, ...untried.map((what) => `Not tried: ${what}`), ...rows].join('\n')
  return { ...draw, lines, findings, calls, effects, missed, untried, text }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? '' : 's'}`
}
