// The table of conformance: every case on every store, run or refused by its manifest, with the fact that forces it.

import type { CaseOutcome, ConformanceCase } from '../../../src/testing/index.js'

/** What the table needs of a case, of whichever suite. */
export type CaseInTable = Pick<ConformanceCase, 'id' | 'title'>

/**
 * What became of a case: `FAILED` from its beginning on, until its outcome is there; skipped where its server is
 * missing.
 */
export type CellOutcome = CaseOutcome | 'FAILED' | 'skipped'

/** Finds what became of a case on a store; undefined: it was not begun, since a filter left it out. */
export type OutcomeOf = (subject: CaseInTable, store: string) => CellOutcome | undefined

/** The table as text. */
export function tableOf(cases: readonly CaseInTable[], stores: readonly string[], outcomeOf: OutcomeOf): string {
  const reasons: string[] = []
  const cell = (subject: CaseInTable, store: string): string => {
    const outcome = outcomeOf(subject, store) ?? 'not run'
    if (!outcome.startsWith('refused: ')) return outcome === 'passed' ? 'run' : outcome
    const reason = outcome.slice('refused: '.length)
    if (!reasons.includes(reason)) reasons.push(reason)
    return `refused [${reasons.indexOf(reason) + 1}]`
  }
  const widths = stores.map((store) => Math.max(store.length, 12) + 2)
  const line = (head: string, cells: readonly string[], tail: string): string =>
    head.padEnd(28) + cells.map((text, column) => text.padEnd(widths[column] ?? 0)).join('') + tail
  const rows = cases.map((subject) =>
    line(
      subject.id,
      stores.map((store) => cell(subject, store)),
      subject.title,
    ),
  )
  const notes = reasons.map((reason, index) => `[${index + 1}] ${reason}`)
  return [line('', stores, ''), ...rows, ...notes].join('\n')
}
