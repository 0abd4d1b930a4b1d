// The storm: the simulator of the retry module, played in the page, ten seconds of it in one.

import type { PolicyData } from 'reprise/retry'
import { Storm, type StormOutcome, type StormReport, type StormSecond } from 'reprise/simulator'
import { Chart } from './chart.js'
import { element, write } from './elements.js'

const load = 700
const seconds = 150
const maxTokens = 10
const playedPerSecond = 12

const input = (id: string): HTMLInputElement => element<HTMLInputElement>(id)
const value = (id: string): number => Number(input(id).value)

interface Run {
  readonly storm: Storm
  readonly chart: Chart
  readonly startedMs: number
  played: number
}

let run: Run | undefined

/** Makes the controls work, and begins. */
export function startStorm(): void {
  element('controls').addEventListener('input', begin)
  element('again').addEventListener('click', begin)
  element('controls').addEventListener('submit', (event) => event.preventDefault())
  begin()
  requestAnimationFrame(play)
}

function policy(): PolicyData {
  return {
    name: 'page',
    attempts: value('repeats') + 1,
    backoff: { kind: 'full', baseMs: 50, capMs: 2_000 },
    ...(input('budget').checked ? { budget: { kind: 'token', maxTokens, tokenRatio: 0.1 } } : {}),
    minimumRemainderMs: 0,
    maxRetryAfterMs: 60_000,
    layer: 'inherit',
  }
}

function begin(): void {
  badge('RUNNING', '')
  write('repeats-value', String(value('repeats')))
  write('capacity-value', `${value('capacity')} / s`)
  write('trigger-value', `${value('trigger')} s`)
  const [capacity, triggerSeconds, idempotent] = [value('capacity'), value('trigger'), input('keys').checked]
  const storm = new Storm({ policy: policy(), load, capacity, triggerSeconds, idempotent, seconds })
  const chart = new Chart({
    seconds,
    capacity,
    triggerAtSeconds: storm.settings.triggerAtSeconds,
    triggerSeconds,
    isSafe: idempotent,
  })
  run = { storm, chart, startedMs: performance.now(), played: 0 }
}

function play(nowMs: number): void {
  requestAnimationFrame(play)
  if (run === undefined || run.played === seconds) return
  const due = Math.min(seconds, Math.floor(((nowMs - run.startedMs) / 1000) * playedPerSecond))
  let last: StormSecond | undefined
  // A tab that was hidden does not catch up in one frame.
  for (let steps = 0; run.played < due && steps < 6; steps += 1) {
    last = run.storm.next()
    run.played += 1
  }
  if (last !== undefined) show(run, last)
}

const badges: Readonly<Record<StormOutcome, readonly [text: string, kind: string]>> = {
  metastable: ['METASTABLE', 'bad'],
  storm: ['STORM', 'warn'],
  recovered: ['RECOVERED', 'good'],
  untroubled: ['UNTROUBLED', 'good'],
  down: ['DOWN', 'warn'],
}

function show({ storm, chart, played }: Run, last: StormSecond): void {
  const report = storm.report()
  chart.draw(report.series)
  badge(...badges[report.findings.outcome])
  write('clock', `${played} s`)
  const share = last.attempts / report.settings.capacity
  meter('offered', share, `${last.attempts} / s · ${share.toFixed(1)} × capacity`)
  const { tokens } = last
  meter('bucket', tokens ?? 0, tokens === undefined ? 'no budget' : `${tokens.toFixed(1)} of ${maxTokens}`)
  write('summary', summary(report))
}

function badge(text: string, kind: string): void {
  write('badge', text)
  element('badge').className = `badge ${kind}`
}

function meter(id: string, level: number, text: string): void {
  element<HTMLMeterElement>(id).value = level
  write(`${id}-value`, text)
}

function summary({ findings, totals, settings }: StormReport): string {
  const repeats = totals.attempts - totals.offered
  const twice = settings.idempotent
    ? `${totals.repeatedCompletions.toLocaleString('en')} repeats recognised, nobody charged twice.`
    : `${totals.doubleBilled.toLocaleString('en')} charged twice.`
  const now = `${findings.finalAmplification.toFixed(1)} calls per intent, ${Math.round(findings.finalGoodput * 100)} % answered in time.`
  return `Of late: ${now} ${repeats.toLocaleString('en')} retries in all: ${twice}`
}
