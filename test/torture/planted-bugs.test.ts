// The torture finds what it is there for: each bug that is planted below a part shows within the default run. With
// REPRISE_LONG all of them, on PostgreSQL and SQLite; else one of each part.

import { describe, expect, it } from 'vitest'
import { isLong, torture } from './command.js'
import { bugNames as messagingBugs } from './messaging/planted.js'
import { bugNames as operationBugs } from './operations/planted.js'
import type { ViolationKind } from './report.js'

type Shows = Readonly<Record<string, readonly ViolationKind[]>>

/** How each bug shows. */
const shows: Readonly<Record<'operations' | 'messaging', Shows>> = {
  operations: {
    'early-answer': ['lost', 'wrongResult', 'forgotten'],
    'hopeful-commit': ['lost', 'wrongResult', 'forgotten'],
    'blind-claim': ['duplicate'],
    'wrong-replay': ['wrongResult'],
    'no-fence': ['zombie', 'duplicate', 'wrongResult'],
    'late-outcome': ['duplicate'],
    forgets: ['duplicate', 'forgotten'],
  },
  messaging: {
    'mark-before-publish': ['lost'],
    'slides-past-head': ['lost', 'outOfOrder'],
    'no-attempt-check': ['duplicate', 'zombie'],
    'hopeful-publish': ['lost'],
    'new-ids': ['duplicate', 'wrongResult'],
    'ack-before-commit': ['lost'],
    'effect-apart': ['lost', 'outOfOrder'],
    'emit-apart': ['lost', 'torn'],
    // What is forgotten and comes again is handled again; where later ones of its key were handled, it is late.
    'short-memory': ['duplicate', 'outOfOrder'],
  },
}

/** Where an engine itself keeps a bug from showing, and why. */
const hidden: Readonly<Record<string, string>> = {
  'no-attempt-check on sqlite':
    'its writer has the file to itself: who stands still in a transaction keeps all others out, and who stands still before it looks at its lease',
}

const all = (['operations', 'messaging'] as const).flatMap((part) =>
  Object.keys(shows[part]).flatMap((bug) =>
    ['sqlite', 'postgres']
      .filter((engine) => hidden[`${bug} on ${engine}`] === undefined)
      .map((engine) => [bug, engine, part] as const),
  ),
)
for (const [cell, why] of Object.entries(hidden)) if (isLong) console.log(`refused: the bug ${cell}, since ${why}`)
const quick = ['blind-claim', 'slides-past-head']
const cells = isLong ? all : all.filter(([bug, engine]) => quick.includes(bug) && engine === 'sqlite')
/**
 * A bug that has not shown after so many runs and so many faults is not found. A machine that has no time for the
 * workers lets a few faults happen in a run, and has to make more of them.
 */
const [mostRuns, enoughFaults] = [3, 60]

it('every bug has a way to show', () => {
  expect(Object.keys(shows.operations)).toEqual(operationBugs)
  expect(Object.keys(shows.messaging)).toEqual(messagingBugs)
})

describe.each(cells)('the bug %s on %s, of %s', (bug, engine, part) => {
  it('is found within a default run, which tells its seed', { timeout: 3_600_000 }, async () => {
    let faults = 0
    for (let seed = 1; seed <= mostRuns || faults < enoughFaults; seed++) {
      const { code, reports, stderr } = await torture(part, [engine], '--seed', String(seed), '--plant', bug)
      const [report] = reports
      faults += Object.values(report?.faults ?? {}).reduce((sum, count) => sum + count, 0)
      if (code === 0) continue
      expect(code, stderr).toBe(1)
      expect(
        shows[part][bug]?.some((kind) => (report?.[kind] ?? 0) > 0),
        JSON.stringify(report),
      ).toBe(true)
      const again = `npm run torture -- ${part} --engine ${engine} --seconds 60 --seed ${seed} --plant ${bug}`
      expect(stderr).toContain(`run it again: ${again}`)
      return
    }
    expect.unreachable(`not found by ${faults} faults`)
  })
})
