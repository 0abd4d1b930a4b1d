// What a run came to: the numbers of the JSON line, and each violation in a sentence.

/** What can be wrong. `outOfOrder` is for parts that promise an order; operations promise none. */
export const violationKinds = [
  'lost',
  'duplicate',
  'phantom',
  'zombie',
  'torn',
  'wrongResult',
  'outOfOrder',
  'forgotten',
  'stuck',
] as const

/** A kind of violation. */
export type ViolationKind = (typeof violationKinds)[number]

/** One violation. */
export interface Violation {
  readonly kind: ViolationKind
  /** Whom it concerns, as it is named in the ledger. */
  readonly intent: string
  /** One sentence that describes it. */
  readonly says: string
}

/** The line of an engine. */
export interface Report extends Readonly<Record<ViolationKind, number>> {
  readonly part: string
  readonly engine: string
  readonly intents: number
  /** How often each kind of fault happened. */
  readonly faults: Readonly<Record<string, number>>
  /** What was lost as the manifest admits it. */
  readonly admitted: number
  /** Fault points that were never reached. */
  readonly missed: readonly string[]
  /** What the run was drawn from. */
  readonly seed: string
}

/** Whom a line is about, and what happened. */
export interface Ran extends Pick<Report, 'part' | 'engine' | 'intents' | 'missed' | 'seed'> {
  readonly faults: ReadonlyMap<string, number>
  readonly violations: readonly Violation[]
}

/** The line of a run. */
export function reportOf({ part, engine, intents, faults, violations, missed, seed }: Ran): Report {
  const counts = Object.fromEntries(
    violationKinds.map((kind) => [kind, violations.filter((violation) => violation.kind === kind).length]),
  ) as Record<ViolationKind, number>
  const byKind = Object.fromEntries([...faults].sort(([a], [b]) => (a < b ? -1 : 1)))
  // No store that operations run on admits a loss.
  return { part, engine, intents, faults: byKind, ...counts, admitted: 0, missed, seed }
}
