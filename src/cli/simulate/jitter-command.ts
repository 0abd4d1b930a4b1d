// `reprise simulate jitter`: how much work and time contending clients need, by kind of backoff.

import { type Backoff, backoffFrom } from '../../retry/index.js'
import { type ContentionResult, publishedBackoffs, simulateContention } from '../../simulator/index.js'
import type { Io } from '../io.js'
import { type Command, type GivenOptions, UsageError } from '../option-table.js'
import { checkOutputs, outputOptions, writeOutputs } from './outputs.js'
import { givenPolicy } from './policy-file.js'
import { methodOption } from './policy-options.js'
import type { Chart } from './svg-chart.js'
import { colored, fitted, progressBar, textTable } from './terminal-plot.js'

const names = ['none', 'exponential', 'equal', 'full', 'decorrelated'] as const

interface Row {
  readonly name: string
  readonly results: readonly ContentionResult[]
}

/** The command `reprise simulate jitter`. */
export const jitterCommand: Command = {
  summary: 'how contending clients get on, by kind of backoff',
  about: `reprise simulate jitter [options]

Clients that start at the same moment write one row, each with the version it read; those that lose wait and
try again. Fewer calls mean less wasted work. The service is never overloaded here, so no wait at all looks
fastest: for what repeats do to a service, see reprise simulate storm.

  reprise simulate jitter --clients 100
  reprise simulate jitter --policy policy.json --svg jitter.svg
`,
  options: [
    {
      title: 'Options',
      options: [
        {
          name: 'clients',
          kind: 'text',
          value: 'N,N,…',
          text: 'how many clients compete, each 1 to 10000 (10,50,100,150,190)',
        },
        { name: 'backoff', kind: 'choice', choices: names, text: 'only this kind (all of them)' },
        { name: 'base-ms', kind: 'number', text: 'first ceiling; decorrelated begins at half of it (10)' },
        { name: 'cap-ms', kind: 'number', text: 'highest ceiling (2000)' },
        { name: 'policy', kind: 'text', value: 'FILE', text: 'also the backoff of your own policy' },
        methodOption,
        { name: 'trials', kind: 'number', text: 'runs that a result is the mean of (100)' },
        { name: 'seed', kind: 'number', text: 'same seed, same result (1)' },
      ],
    },
    ...outputOptions,
  ],
  run: runJitter,
}

async function runJitter(given: GivenOptions, io: Io): Promise<void> {
  const clients = clientsOf(given.text('clients') ?? '10,50,100,150,190')
  const backoffs = await backoffsOf(given, io)
  await checkOutputs(given, io)
  const quiet = given.text('json') === ''
  const numbers = given.numbers({ trials: 'trials', seed: 'seed' })
  const total = backoffs.length * clients.length
  const rows: Row[] = []
  for (const [index, [name, backoff]] of backoffs.entries()) {
    const results: ContentionResult[] = []
    for (const count of clients) {
      if (!quiet) showProgress(io, (index * clients.length + results.length) / total, `${name}, ${count} clients`)
      results.push(simulateContention({ ...numbers, backoff, clients: count }))
    }
    rows.push({ name, results })
  }
  if (!quiet) io.write(`${io.columns === undefined ? '' : '\r\u001b[K'}${jitterText(rows, io)}`)
  await writeOutputs(given, io, {
    json: { settings: { clients, ...numbers }, rows },
    chart: jitterChart(rows, clients),
  })
}

// The simulator's own limit. Checked here so that it is refused before the run, for the whole list at once.
const mostClients = 10_000

function clientsOf(text: string): number[] {
  const counts = text.split(',').map((part) => (/^\d{1,5}$/.test(part.trim()) ? Number(part) : 0))
  if (counts.some((count) => count < 1 || count > mostClients)) {
    throw new UsageError(`--clients takes whole numbers from 1 to ${mostClients}, such as 10,50,100`)
  }
  return [...new Set(counts)].sort((a, b) => a - b)
}

async function backoffsOf(given: GivenOptions, io: Io): Promise<[string, Backoff][]> {
  const all = Object.entries(publishedBackoffs(given.number('base-ms'), given.number('cap-ms')))
  const only = given.text('backoff')
  const chosen = all.filter(([name]) => only === undefined || name === only)
  const policy = await givenPolicy(given, io)
  return policy === undefined ? chosen : [...chosen, ['yours', backoffFrom(policy.backoff)]]
}

function showProgress(io: Io, share: number, doing: string): void {
  if (io.columns === undefined) return
  const line = `${progressBar(share, Math.min(20, Math.floor(io.columns / 3)))} ${doing}`
  io.write(`\r${line.slice(0, io.columns - 1)}\u001b[K`)
}

const seconds = (timeMs: number): string => `${(timeMs / 1000).toFixed(timeMs < 9950 ? 2 : 1)} s`

function jitterText(rows: readonly Row[], io: Io): string {
  const counts = rows[0]?.results.map(({ clients }) => clients) ?? []
  const header = ['calls / time', ...counts.map((count) => `${count} clients`)]
  const body = rows.map(({ name, results }) => [
    name,
    ...results.map(({ calls, timeMs }) => `${calls.toFixed(0)} / ${seconds(timeMs)}`),
  ])
  const { columns } = io
  const wide = textTable([header, ...body])
  const table = columns !== undefined && wide.indexOf('\n') > columns ? lists(rows) : wide
  const advice = 'A contention model: the service is never overloaded, so waiting less looks faster than it is.\n'
  const plot = columns === undefined || columns < leastBarColumns ? '' : `\n${bars(rows, columns, io.color)}`
  return `${fitted(table, columns)}${plot}\n${fitted(advice, columns)}`
}

/** For a terminal that is too narrow for the table: a list for each kind of backoff. */
function lists(rows: readonly Row[]): string {
  const lines = rows.flatMap(({ name, results }) => [
    `${name}: calls, time`,
    ...results.map(({ clients, calls, timeMs }) => ` ${clients}: ${calls.toFixed(0)}, ${seconds(timeMs)}`),
  ])
  return `${lines.join('\n')}\n`
}

// Room for a name, a bar and a number of calls.
const leastBarColumns = 30

/** Calls of the largest fleet as bars. */
function bars(rows: readonly Row[], columns: number, color: boolean): string {
  const last = rows.map(({ name, results }) => ({ name, calls: results[results.length - 1]?.calls ?? 0 }))
  const most = Math.max(...last.map(({ calls }) => calls))
  const room = Math.min(60, columns - 24)
  const lines = last.map(({ name, calls }) => {
    const bar = '█'.repeat(Math.max(1, Math.round((calls / most) * room)))
    return `${name.padEnd(13)}${colored(bar, 36, color)} ${calls.toFixed(0)}\n`
  })
  return `calls of ${rows[0]?.results[rows[0].results.length - 1]?.clients} clients\n${lines.join('')}`
}

function jitterChart(rows: readonly Row[], clients: readonly number[]): Chart {
  const lines = (member: 'calls' | 'timeMs', unit: number) =>
    rows.map(({ name, results }, color) => ({
      name,
      color,
      points: results.map((result) => [result.clients, result[member] / unit] as const),
    }))
  return {
    title: 'Contention by kind of backoff',
    subtitles: [
      'Clients that start together and write one row; means over all trials. The service is never overloaded.',
    ],
    xTitle: 'clients',
    xRange: [Math.min(0, ...clients), Math.max(...clients)],
    panels: [
      { title: 'calls until all succeeded', lines: lines('calls', 1) },
      { title: 'seconds, logarithmic', logarithmic: true, lines: lines('timeMs', 1000) },
    ],
  }
}
