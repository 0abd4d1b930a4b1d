import { describe, expect, it } from 'vitest'
import { consecutiveBreaker, constantDelay, ratioBudget, retryPolicy } from '../../retry/index.js'
import { type StormFindings, type StormReport, simulateStorm } from '../../simulator/index.js'
import { policyWords, secondsTable, stormChart, stormFrame, summary, verdictLine } from './storm-text.js'

const short = { seconds: 20, triggerAtSeconds: 5, triggerSeconds: 3, load: 50, capacity: 100 }
const policy = retryPolicy({ attempts: 4, budget: false }).toJSON()
const report = simulateStorm({ ...short, policy })

const found = (findings: Partial<StormFindings>, load = 50): StormReport => ({
  ...report,
  settings: { ...report.settings, load },
  findings: {
    ...report.findings,
    outcome: 'down',
    storm: false,
    metastableAtSecond: undefined,
    recoveredAfterSeconds: undefined,
    peakAmplification: 5,
    ...findings,
  },
})

describe('verdictLine', () => {
  it.each([
    [{ recoveredAfterSeconds: 12 }, 'Recovered 12 s after the trigger.'],
    [{ recoveredAfterSeconds: 0 }, 'Well as soon as the trigger was over.'],
    [
      { storm: true, recoveredAfterSeconds: 3 },
      'STORM: load passed 4× (at most 5.00×); recovered 3 s after the trigger.',
    ],
    [
      { storm: true },
      'STORM: load passed 4× (at most 5.00×); still down at the end; a longer run (--seconds) may show more.',
    ],
    [{ outcome: 'untroubled' as const }, 'No trouble: goodput never fell.'],
    [{}, 'DOWN: still down at the end; a longer run (--seconds) may show more.'],
  ])('%j', (findings, expected) => {
    expect(verdictLine(found(findings))).toBe(expected)
  })

  it('names METASTABLE, also beside a later recovery', () => {
    const latched = { metastableAtSecond: 27, storm: true, recoveredAfterSeconds: 60 }
    expect(verdictLine(found(latched))).toBe(
      'STORM, METASTABLE: 20 s after the trigger had cleared the service was still down and its queue not shrinking; ' +
        'recovered 60 s after the trigger, load at most 5.00×.',
    )
  })

  it('says that the trigger lies outside of the run, in place of a verdict on it', () => {
    const outside = simulateStorm({ policy, triggerAtSeconds: 100, seconds: 30 })
    expect(verdictLine(outside)).toBe(
      'No trouble: goodput never fell; the trigger (--trigger-at) lies after the end of the run (--seconds).',
    )
    expect(stormChart(outside).title).toBe('No trouble')
    const down = simulateStorm({ policy, triggerAtSeconds: 100, seconds: 30, load: 2_000 })
    expect(verdictLine(down)).toContain('still down at the end; the load is above the capacity.')
  })

  it('says when no policy could help', () => {
    expect(verdictLine(found({}, 100))).toContain('the load is above the capacity')
  })
})

describe('policyWords', () => {
  it('names what the policy has', () => {
    const full = retryPolicy({
      attempts: 1,
      backoff: constantDelay(20),
      budget: ratioBudget(),
      breaker: consecutiveBreaker(),
    }).toJSON()
    const { settings } = simulateStorm({ ...short, policy: full, clients: 1, guarded: false })
    expect(policyWords(settings)).toBe(
      '1 attempt, backoff 20 ms, ratio budget 10 %, consecutive breaker, 1 client, unguarded',
    )
  })
})

it('names a policy that has a name, and a budget that is a peer\u2019s', () => {
  const own = retryPolicy({ name: 'shop\u001b[2J', budget: false }).toJSON()
  const { settings } = simulateStorm({ ...short, policy: own, peerBudget: { kind: 'quota' } })
  expect(policyWords(settings)).toBe(
    "shop [2J: 3 attempts, backoff full 50..2000 ms, a peer's quota 500/14, no breaker, 10 clients",
  )
})

describe('summary', () => {
  it('counts effects by what the service recognises', () => {
    expect(summary(report)).toMatch(
      /effects {3}\d+ completed, \d+ repeats completed again, recognised by the service\n/,
    )
    expect(summary(simulateStorm({ ...short, policy, idempotent: false }))).toMatch(/\d+ effects double-billed\n/)
  })

  it('suggests the run without the budget, where there is one', () => {
    const suggestion = 'compare   add --budget none: the same run without the budget\n'
    const budgeted = retryPolicy({ attempts: 4, budget: ratioBudget({ ratio: 0.1 }) }).toJSON()
    expect(summary(simulateStorm({ ...short, policy: budgeted }))).toContain(suggestion)
    expect(summary(report)).not.toContain(suggestion)
  })
})

describe('secondsTable', () => {
  it('has about fifteen rows, and adds up', () => {
    const lines = secondsTable(report).trimEnd().split('\n')
    expect(lines).toHaveLength(11)
    expect(lines[0]).toMatch(/^seconds +offered\/s +attempts\/s +load +goodput\/s +queue +tokens +goodput$/)
    expect(lines[1]).toMatch(/^0-1 /)
    // Full before the trigger, and shorter while it lasts: the share of what was offered.
    const bars = lines.slice(1).map((line) => /█*(?=░*$)/.exec(line)?.[0].length ?? 0)
    expect(Math.max(...bars)).toBe(20)
    expect(Math.min(...bars)).toBeLessThan(20)
  })
})

describe('stormFrame', () => {
  it('has as many lines at every moment, none wider than the terminal', () => {
    const first = stormFrame(report.settings, report.series.slice(0, 1), 60, false)
    const last = stormFrame(report.settings, report.series, 60, false)
    expect(first).toHaveLength(last.length)
    for (const line of [...first, ...last]) expect(line.length).toBeLessThan(60)
    expect(last[0]).toContain('20/20 s')
    expect(last.at(-1)).toBe(`${' '.repeat(8 + 5)}▔▔▔ trigger`)
  })

  it.each([
    [16, 1],
    [20, 5],
    [30, 17],
    [39, 20],
    [60, 100],
    [200, 12],
  ])('keeps to %d columns with a trigger at %d s', (columns, triggerAtSeconds) => {
    const { settings, series } = simulateStorm({ ...short, policy: retryPolicy().toJSON(), triggerAtSeconds })
    const frames = [1, 7, 20].map((played) => stormFrame(settings, series.slice(0, played), columns, false))
    for (const frame of frames) {
      expect(frame).toHaveLength(frames[0]?.length ?? 0)
      for (const line of frame) expect(line.length).toBeLessThan(columns)
    }
    expect(frames[2]?.join('\n')).toContain('█')
    expect(frames[2]?.join('\n')).toContain('20/20 s')
  })

  it.each([
    [100, 5, `${' '.repeat(5)}▔▔▔ trigger`],
    [29, 17, `${' '.repeat(9)}trigger ▔▔▔`],
    [20, 5, `${' '.repeat(3)}▔`],
  ])('in %d columns marks a trigger at %d s', (columns, triggerAtSeconds, mark) => {
    const { settings, series } = simulateStorm({ ...short, policy, triggerAtSeconds })
    expect(stormFrame(settings, series, columns, false).at(-1)).toBe(' '.repeat(8) + mark)
  })

  it('shows budgets only where there are some', () => {
    const tokens = simulateStorm({ ...short, policy: retryPolicy().toJSON() })
    const title = 'left in the budget, mean of all clients'
    expect(stormFrame(tokens.settings, tokens.series, 60, false)).toContain(title)
    expect(stormFrame(report.settings, report.series, 60, false)).not.toContain(title)
    expect(stormFrame(tokens.settings, tokens.series, 30, false)).toContain('left in the budget')
    const quota = simulateStorm({ ...short, policy, peerBudget: { kind: 'quota' } })
    expect(stormFrame(quota.settings, quota.series, 60, false)).toContain(title)
    expect(stormChart(quota).panels).toHaveLength(3)
  })
})

describe('stormChart', () => {
  it('shades the trigger and draws every second', () => {
    const chart = stormChart(report)
    expect(chart.shade).toEqual({ from: 5, to: 8, name: 'trigger' })
    expect(chart.panels).toHaveLength(2)
    expect(chart.panels[0]?.lines.map((line) => line.points.length)).toEqual([20, 20, 20])
    const quiet = simulateStorm({ ...short, triggerSeconds: 0, policy: retryPolicy().toJSON() })
    expect(stormChart(quiet).shade).toBeUndefined()
    expect(stormChart(simulateStorm({ ...short, triggerAtSeconds: 20, policy })).shade).toBeUndefined()
    const cut = simulateStorm({ ...short, triggerAtSeconds: 19, policy })
    expect(stormChart(cut).shade).toMatchObject({ from: 19, to: 20 })
    expect(stormChart(quiet).panels).toHaveLength(3)
  })
})
