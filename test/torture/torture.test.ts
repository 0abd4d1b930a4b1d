// A short run of `npm run torture` for each part; with REPRISE_LONG the default one, on every engine.

import { expect, it } from 'vitest'
import { isLong, torture } from './command.js'
import { violationKinds } from './report.js'

const engines = isLong ? ['postgres', 'pgbouncer', 'sqlite'] : ['postgres', 'sqlite']
const options = isLong ? [] : ['--seconds', '5']

/** Runs a part, and expects no violation. */
async function expectHolds(part: 'operations' | 'messaging'): Promise<void> {
  const { code, reports, stderr } = await torture(part, engines, ...options)
  expect(code, stderr).toBe(0)
  expect(reports.map(({ engine }) => engine)).toEqual(engines)
  for (const report of reports) {
    const line = JSON.stringify(report)
    expect(Object.keys(report), line).toEqual([
      ...['part', 'engine', 'intents', 'faults'],
      ...violationKinds,
      ...['admitted', 'missed', 'seed'],
    ])
    for (const kind of violationKinds) expect(report[kind], line).toBe(0)
    expect(report.intents, line).toBeGreaterThan(10)
    const faults = Object.values(report.faults).reduce((sum, count) => sum + count, 0)
    expect(faults, line).toBeGreaterThan(3)
  }
}

it('operations hold: nothing lost, twice, torn, forgotten or stuck, whatever strikes', { timeout: 1_200_000 }, () =>
  expectHolds('operations'),
)

it('messages hold: none lost, handled twice, out of order or stuck, whatever strikes', { timeout: 1_200_000 }, () =>
  expectHolds('messaging'),
)
