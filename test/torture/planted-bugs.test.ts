// The torture finds what it is there for: each bug that is planted below the operations shows within the default run.
// With REPRISE_LONG all of them, on PostgreSQL and SQLite; else one.

import { describe, expect, it } from 'vitest'
import { isLong, torture } from './command.js'
import { bugNames } from './operations/planted.js'
import type { ViolationKind } from './report.js'

/** How each bug shows. */
const shows: Readonly<Record<string, readonly ViolationKind[]>> = {
  'early-answer': ['lost', 'wrongResult', 'forgotten'],
  'hopeful-commit': ['lost', 'wrongResult', 'forgotten'],
  'blind-claim': ['duplicate'],
  'wrong-replay': ['wrongResult'],
  'no-fence': ['zombie', 'duplicate', 'wrongResult'],
  'late-outcome': ['duplicate'],
  forgets: ['duplicate', 'forgotten'],
}

const all = bugNames.flatMap((bug) => ['sqlite', 'postgres'].map((engine) => [bug, engine] as const))
const cells = isLong ? all : all.filter(([bug, engine]) => bug === 'blind-claim' && engine === 'sqlite')
/** A machine that has no time for the workers lets too little happen in one run. */
const seeds = ['1', '2', '3']

it('every bug has a way to show', () => {
  expect(Object.keys(shows)).toEqual(bugNames)
})

describe.each(cells)('the bug %s on %s', (bug, engine) => {
  it('is found within a default run, which tells its seed', { timeout: 1_200_000 }, async () => {
    for (const seed of seeds) {
      const { code, reports, stderr } = await torture([engine], '--seed', seed, '--plant', bug)
      if (code === 0) continue
      expect(code, stderr).toBe(1)
      const [report] = reports
      expect(
        shows[bug]?.some((kind) => (report?.[kind] ?? 0) > 0),
        JSON.stringify(report),
      ).toBe(true)
      const again = `npm run torture -- operations --engine ${engine} --seconds 60 --seed ${seed} --plant ${bug}`
      expect(stderr).toContain(`run it again: ${again}`)
      return
    }
    expect.unreachable(`not found with the seeds ${seeds.join(', ')}`)
  })
})
