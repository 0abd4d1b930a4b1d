// The storm: the simulator of the retry module, played in the page, ten seconds of it in one.

import type { PolicyData } from 'reprise/retry'
import { Storm, type StormOutcome, type StormReport, type StormSecond } from 'reprise/simulator'
import { Chart } from './chart.js'
import { element, write } from './elements.js'
import { isSafe, type Method, Scene } from './scene.js'

const load = 700
const seconds = 150
const maxTokens = 10
const playedPerSecond = 12

const input = (id: string): HTMLInputElement => element<HTMLInputElement>(id)
const value = (id: string): number => Number(input(id).value)

interface Run {
  readonly storm: Storm
  readonly chart: Chart
  readonly scene: Scene
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

function methodOf(): Method {
  return input('greet').checked ? 'greet' : 'charge'
}

function begin(): void {
  badge('RUNNING', '')
  write('repeats-value', String(value('repeats')))
  write('capacity-value', `${value('capacity')} / s`)
  write('trigger-value', `${value('trigger')} s`)
  const [capacity, triggerSeconds, knowsKeys] = [value('capacity'), value('trigger'), input('keys').checked]
  const method = methodOf()
  const idempotent = isSafe({ method, knowsKeys })
  // A greeting needs no key.
  input('keys').disabled = method === 'greet'
  const storm = new Storm({ policy: policy(), load, capacity, triggerSeconds, idempotent, seconds })
  const { triggerAtSeconds } = storm.settings
  const chart = new Chart({ seconds, capacity, triggerAtSeconds, triggerSeconds, isSafe: idempotent })
  const repeats = value('repeats')
  const scene = new Scene({ method, knowsKeys, repeats, capacity, maxTokens, triggerAtSeconds, triggerSeconds })
  run = { storm, chart, scene, startedMs: performance.now(), played: 0 }
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

function show({ storm, chart, scene, played }: Run, last: StormSecond): void {
  const report = storm.report()
  chart.draw(report.series)
  scene.draw(last)
  badge(...badges[report.findings.outcome])
  write('clock', `${played} s`)
  write('summary', summary(report))
}

function badge(text: string, kind: string): void {
  write('badge', text)
  element('badge').className = `badge ${kind}`
}

function summary({ findings, totals, settings }: StormReport): string {
  const repeats = totals.attempts - totals.offered
  const repeated = totals.repeatedCompletions.toLocaleString('en')
  const safely =
    methodOf() === 'greet'
      ? `${repeated} greeted again, which changes nothing.`
      : `${repeated} repeats recognised, nobody charged twice.`
  const twice = settings.idempotent ? safely : `${totals.doubleBilled.toLocaleString('en')} charged twice.`
  const now = `${findings.finalAmplification.toFixed(1)} calls per intent, ${Math.round(findings.finalGoodput * 100)} % answered in time.`
  const advice =
    findings.outcome === 'metastable' ? ' Retries that are safe bring no service back: try it with the budget.' : ''
  return `Of late: ${now} ${repeats.toLocaleString('en')} retries in all: ${twice}${advice}`
}
