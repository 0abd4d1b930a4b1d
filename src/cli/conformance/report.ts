// The report of a conformance run as text: first what failed, with what was seen.

import type { HttpCaseFacts, HttpCaseOutcome } from '../../testing/index.js'

/** A case, and what became of it. */
export type CaseResult = HttpCaseFacts & HttpCaseOutcome

/** The report as text; `left` says how many cases were not begun. */
export function reportText(results: readonly CaseResult[], left: number): string {
  const of = <Outcome extends CaseResult['outcome']>(outcome: Outcome) =>
    results.filter((one): one is CaseResult & { readonly outcome: Outcome } => one.outcome === outcome)
  const [passed, failed, absent] = [of('passed'), of('failed'), of('not offered')]
  const lines: string[] = []
  for (const { id, title, proves, why } of failed) {
    lines.push(`failed       ${id}  ${title}`, `             seen: ${why}`, `             so:   ${proves}`)
  }
  const reasons = new Map<string, string[]>()
  for (const { id, why } of absent) reasons.set(why, [...(reasons.get(why) ?? []), id])
  for (const [why, ids] of reasons) lines.push(`not offered  ${ids.join(', ')}: ${why}`)
  const counts = [`${passed.length} passed`, `${failed.length} failed`, `${absent.length} not offered`]
  if (left > 0) counts.push(`${left} not begun`)
  return `${[...lines, counts.join(', ')].join('\n')}\n`
}
