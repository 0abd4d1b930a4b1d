// The result of a storm simulation as text, as a table, as a frame for the terminal and as a chart.

import {
  hiddenCapacity,
  type StormReport,
  type StormSecond,
  type StormSettings,
  stormFindings,
  triggerEndSeconds,
} from '../../simulator/index.js'
import { printable } from '../io.js'
import type { Chart } from './svg-chart.js'
import { barPanel, colored, heading, labelWidth, progressBar, textTable } from './terminal-plot.js'

const percent = (share: number): string => `${Math.round(share * 100)} %`
const times = (ratio: number): string => `${ratio.toFixed(2)}×`

const hasOwnBudget = ({ policy, peerBudget }: StormSettings): boolean =>
  peerBudget === 'none' && policy.budget !== undefined

const hasBudget = (settings: StormSettings): boolean => settings.peerBudget !== 'none' || hasOwnBudget(settings)

function budgetWords({ policy, peerBudget }: StormSettings): string {
  const { budget } = policy
  if (peerBudget !== 'none') return `a peer's quota ${peerBudget.capacity}/${peerBudget.cost}`
  if (budget === undefined) return 'no budget'
  if (budget.kind === 'token') return `token budget ${budget.maxTokens}/${budget.tokenRatio}`
  return `ratio budget ${percent(budget.ratio)}`
}

// Default names, which are not worth printing.
const nameless = ['policy', 'retry']

/** The policy in a few words, beginning with its name if it has one. */
export function policyWords(settings: StormSettings): string {
  const { policy, clients, guarded } = settings
  const { name, attempts, backoff, breaker, limit } = policy
  const waits =
    backoff.kind === 'constant' ? `${backoff.baseMs} ms` : `${backoff.kind} ${backoff.baseMs}..${backoff.capMs} ms`
  return [
    `${nameless.includes(name) ? '' : `${printable(name)}: `}${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}`,
    `backoff ${waits}`,
    budgetWords(settings),
    breaker === undefined ? 'no breaker' : `${breaker.kind} breaker`,
    ...(limit === undefined ? [] : [`at most ${limit.most} out and ${limit.queue} waiting`]),
    `${clients} ${clients === 1 ? 'client' : 'clients'}`,
    ...(guarded ? [] : ['unguarded']),
  ].join(', ')
}

/** The service and its load in a few words. */
export function sceneWords(settings: StormSettings): string {
  const { load, capacity, triggerCapacity, triggerAtSeconds, seed } = settings
  const trigger =
    settings.triggerSeconds === 0
      ? 'no trigger'
      : `${percent(triggerCapacity)} of it from ${triggerAtSeconds} s to ${triggerEndSeconds(settings)} s`
  return `load ${load}/s, capacity ${capacity}/s, ${trigger}, seed ${seed}`
}

/** The last line: what became of the service. */
export function verdictLine({ findings, settings }: StormReport): string {
  const { recoveredAfterSeconds: after, metastableAtSecond, peakAmplification } = findings
  const recovery =
    after === undefined
      ? 'still down at the end'
      : after === 0
        ? 'well as soon as the trigger was over'
        : `recovered ${after} s after the trigger`
  const storm = findings.storm ? `STORM: load passed 4× (at most ${times(peakAmplification)}); ` : ''
  if (metastableAtSecond !== undefined) {
    const since = metastableAtSecond + 1 - triggerEndSeconds(settings)
    const name = findings.storm ? 'STORM, METASTABLE' : 'METASTABLE'
    return `${name}: ${Math.round(since)} s after the trigger had cleared the service was still down and its queue not shrinking; ${recovery}, load at most ${times(peakAmplification)}.`
  }
  if (after !== undefined) return `${storm}${storm === '' ? capital(recovery) : recovery}.`
  if (findings.outcome === 'untroubled') return `No trouble: goodput never fell${noTriggerWords(settings)}.`
  const hint =
    settings.load >= settings.capacity ? 'the load is above the capacity' : 'a longer run (--seconds) may show more'
  return `${storm}${storm === '' ? 'DOWN: ' : ''}${recovery}; ${hint}.`
}

// Explains why nothing happened, where the trigger comes after the end of the run.
function noTriggerWords({ triggerAtSeconds, triggerSeconds, seconds }: StormSettings): string {
  if (triggerSeconds === 0 || triggerAtSeconds < seconds) return ''
  return `; the trigger (--trigger-at) lies after the end of the run (--seconds)`
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** The figures under a plot or table. */
export function summary(report: StormReport): string {
  const { findings, totals, settings } = report
  const stops = Object.entries(totals.stops)
    .sort(([, a], [, b]) => b - a)
    .map(([reason, count]) => `${reason} ${count}`)
  const repeated = settings.idempotent
    ? `${totals.repeatedCompletions} repeats completed again, recognised by the service`
    : `${totals.doubleBilled} effects double-billed`
  return [
    `goodput   ${percent(findings.finalGoodput)} in the last 10 s, ${percent(findings.lost)} lost since the trigger began`,
    `load      ${times(findings.triggerAmplification)} around the trigger, at most ${times(findings.peakAmplification)}, ${times(findings.finalAmplification)} at the end`,
    `effects   ${totals.completions} completed, ${repeated}`,
    `given up  ${stops.length === 0 ? 'none' : stops.join(', ')}`,
    `theory    heals by itself below a load of about ${Math.round(hiddenCapacity(settings))}/s`,
    ...(hasOwnBudget(settings) ? ['compare   add --budget none: the same run without the budget'] : []),
    '',
  ].join('\n')
}

const barCells = 20

/**
 * The run as a table of about fifteen rows, each the mean of some seconds, with goodput as a bar of what was offered.
 */
export function secondsTable({ series }: StormReport): string {
  const step = Math.max(1, Math.ceil(series.length / 15))
  const rows = [
    ['seconds', 'offered/s', 'attempts/s', 'load', 'goodput/s', 'queue', 'tokens', 'goodput'.padEnd(barCells)],
  ]
  for (let first = 0; first < series.length; first += step) {
    const part = series.slice(first, first + step)
    const last = part[part.length - 1] as StormSecond
    const mean = (member: 'offered' | 'attempts' | 'goodput'): number =>
      part.reduce((sum, second) => sum + second[member], 0) / part.length
    rows.push([
      part.length === 1 ? String(first) : `${first}-${first + part.length - 1}`,
      mean('offered').toFixed(0),
      mean('attempts').toFixed(0),
      mean('offered') === 0 ? '-' : times(mean('attempts') / mean('offered')),
      mean('goodput').toFixed(0),
      String(last.queue),
      last.tokens === undefined ? '-' : last.tokens.toFixed(1),
      progressBar(mean('offered') === 0 ? 0 : Math.min(1, mean('goodput') / mean('offered')), barCells),
    ])
  }
  return textTable(rows)
}

/** The narrowest terminal that a frame can be drawn in, in characters. */
export const leastFrameColumns = 16

/**
 * The run so far as lines for a terminal. Every frame of a run has the same number of lines, all narrower than the
 * terminal.
 */
export function stormFrame(
  settings: StormSettings,
  series: readonly StormSecond[],
  columns: number,
  color: boolean,
): string[] {
  const { seconds, load } = settings
  const width = Math.min(columns - 1, seconds + labelWidth)
  const panel = { length: seconds, columns: width }
  return [
    ...progressLines(settings, series, columns - 1),
    ...barPanel(
      {
        ...panel,
        title: 'attempts/s',
        values: series.map((second) => second.attempts),
        rows: 5,
        color: 33,
        atLeast: load,
      },
      color,
    ),
    ...barPanel(
      {
        ...panel,
        title: 'goodput/s',
        values: series.map((second) => second.goodput),
        rows: 4,
        color: 32,
        atLeast: load,
      },
      color,
    ),
    ...barPanel({ ...panel, title: 'queue', values: series.map((second) => second.queue), rows: 3, color: 35 }, color),
    ...(!hasBudget(settings)
      ? []
      : barPanel(
          {
            ...panel,
            title: heading('left in the budget, mean of all clients', columns - 1),
            values: series.map((second) => second.tokens),
            rows: 2,
            color: 36,
          },
          color,
        )),
    `${' '.repeat(labelWidth)}${colored(triggerMark(settings, width - labelWidth, columns - 1 - labelWidth), 31, color)}`,
  ]
}

// In a narrow terminal the words STORM and METASTABLE get a line of their own, so that the bar keeps its length.
function progressLines(settings: StormSettings, series: readonly StormSecond[], columns: number): string[] {
  const { seconds } = settings
  const { storm, metastableAtSecond } = stormFindings(settings, series)
  const names = [...(storm ? ['STORM'] : []), ...(metastableAtSecond === undefined ? [] : ['METASTABLE'])].join(' ')
  const count = `${series.length}/${seconds} s`
  const isNarrow = columns < narrow
  const room = columns - count.length - (isNarrow ? 1 : 'STORM METASTABLE'.length + 2)
  const progress = room < 3 ? count : `${progressBar(series.length / seconds, Math.min(40, room))} ${count}`
  return isNarrow ? [progress, names] : [`${progress} ${names}`.trimEnd()]
}

const narrow = 40

// The word `trigger` goes after the mark if there is room, else before it.
function triggerMark(settings: StormSettings, bars: number, room: number): string {
  if (settings.triggerSeconds === 0) return ''
  const column = (second: number): number => Math.min(bars, Math.round((second / settings.seconds) * bars))
  const from = column(settings.triggerAtSeconds)
  const to = Math.min(bars, Math.max(from + 1, column(triggerEndSeconds(settings))))
  const mark = '▔'.repeat(to - from)
  const word = 'trigger'
  if (to + 1 + word.length <= room) return `${' '.repeat(from)}${mark} ${word}`
  if (word.length + 1 <= from) return `${' '.repeat(from - word.length - 1)}${word} ${mark}`
  return `${' '.repeat(from)}${mark}`
}

/** The run as a chart. */
export function stormChart(report: StormReport): Chart {
  const { settings, series } = report
  const points = (member: 'offered' | 'attempts' | 'goodput' | 'queue' | 'tokens'): [number, number][] =>
    series.map((second) => [second.second + 0.5, second[member] ?? 0])
  const { triggerAtSeconds: from, triggerSeconds, seconds } = settings
  const shade = { from, to: Math.min(seconds, triggerEndSeconds(settings)), name: 'trigger' }
  return {
    title: verdictTitle(report),
    subtitles: [policyWords(settings), sceneWords(settings)],
    xTitle: 'seconds',
    xRange: [0, seconds],
    ...(triggerSeconds > 0 && from < seconds && { shade }),
    panels: [
      {
        title: 'per second',
        lines: [
          { name: 'attempts', color: 1, points: points('attempts') },
          { name: 'offered', color: 5, dashed: true, points: points('offered') },
          { name: 'goodput', color: 2, points: points('goodput') },
        ],
      },
      { title: 'requests in the queue', lines: [{ name: 'queue', color: 3, points: points('queue') }] },
      ...(!hasBudget(settings)
        ? []
        : [
            {
              title: 'left in the budget, mean of all clients',
              lines: [{ name: 'tokens', color: 0, points: points('tokens') }],
            },
          ]),
    ],
  }
}

function verdictTitle({ findings }: StormReport): string {
  const after = findings.recoveredAfterSeconds
  const { storm, metastableAtSecond, outcome } = findings
  const down = outcome === 'untroubled' ? 'no trouble' : 'still down at the end'
  const end = after === undefined ? down : `recovered ${after} s after the trigger`
  const names = [...(storm ? ['STORM'] : []), ...(metastableAtSecond === undefined ? [] : ['METASTABLE'])].join(', ')
  return names === '' ? capital(end) : `${names}: ${end}`
}
