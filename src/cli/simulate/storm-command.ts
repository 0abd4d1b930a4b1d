// `reprise simulate storm`: what a policy does to a service that loses most of its capacity for a while.

import { type Refusal, Storm, type StormOptions, type StormReport, stormFindings } from '../../simulator/index.js'
import type { Io } from '../io.js'
import { type GivenOptions, type OptionGroup, optionHelp } from '../option-table.js'
import { checkOutputs, outputOptions, writeOutputs } from './outputs.js'
import { readPolicyFile } from './policy-file.js'
import { policyOptions, policyWith } from './policy-options.js'
import { policyWords, sceneWords, secondsTable, stormChart, stormFrame, summary, verdictLine } from './storm-text.js'

const scene: readonly OptionGroup[] = [
  {
    title: 'Service and load',
    options: [
      { name: 'load', kind: 'number', text: 'intents that arrive per second (700)' },
      { name: 'capacity', kind: 'number', text: 'requests the service completes per second (1000)' },
      { name: 'service-ms', kind: 'number', text: 'mean time of one request in a worker (10)' },
      { name: 'queue-limit', kind: 'number', text: 'requests that may wait; more are refused (no limit)' },
      {
        name: 'refusal',
        kind: 'choice',
        choices: ['overload', 'unsent'],
        text: 'what is refused sees a 503, or no connection (overload)',
      },
      { name: 'clients', kind: 'number', text: 'size of the fleet (10)' },
      { name: 'trigger-at', kind: 'number', value: 'SECOND', text: 'when the trigger begins (20)' },
      { name: 'trigger-seconds', kind: 'number', text: 'how long it lasts (10)' },
      { name: 'trigger-capacity', kind: 'number', text: 'share of the capacity that is left meanwhile (0.3)' },
      { name: 'seconds', kind: 'number', text: 'length of the run (150)' },
      {
        name: 'idempotent',
        kind: 'flag',
        opposite: 'not-idempotent',
        text: 'whether the service recognises repeats (it does)',
      },
      {
        name: 'guarded',
        kind: 'flag',
        opposite: 'unguarded',
        text: 'whether the clients repeat after a time-out (they do)',
      },
      { name: 'seed', kind: 'number', text: 'same seed, same run (1)' },
    ],
  },
]

/** The options of the command. */
export const stormOptions: readonly OptionGroup[] = [...policyOptions, ...scene, ...outputOptions]

/** The help of the command. */
export function stormHelp(): string {
  return `reprise simulate storm [options]

Plays a service that loses most of its capacity for ten seconds, and clients that repeat what timed out. The decisions
are those of the real policy code; the same seed gives the same run.

  reprise simulate storm --attempts 6 --budget none           the storm stays when its cause is gone
  reprise simulate storm --attempts 6                         the budget ends it
  reprise simulate storm --policy policy.json --svg out.svg   your own policy, drawn

The last line says: recovered, STORM (more than 4 requests for each intent over ten seconds), or METASTABLE (twenty
seconds after the trigger the service is still down, and its queue is not shrinking).

${optionHelp(stormOptions)}`
}

/** Runs the command. */
export async function stormCommand(given: GivenOptions, io: Io): Promise<void> {
  const file = given.text('policy')
  const policy = policyWith(given, file === undefined ? undefined : await readPolicyFile(file, io))
  if (policy.hedgeAfterMs !== undefined) io.complain('reprise: hedging is not simulated; the policy runs without it\n')
  const storm = new Storm({ policy, ...sceneOf(given) })
  await checkOutputs(given, io)
  const quiet = given.text('json') === ''
  if (!quiet) io.write(`${policyWords(storm.settings)}\n${sceneWords(storm.settings)}\n\n`)
  const report = play(storm, io, quiet)
  if (!quiet) io.write(`\n${summary(report)}`)
  await writeOutputs(given, io, { json: report, chart: stormChart(report) })
  if (!quiet) io.write(`${verdictLine(report)}\n`)
}

function sceneOf(given: GivenOptions): Omit<StormOptions, 'policy'> {
  const refusal = given.text('refusal') as Refusal | undefined
  const idempotent = given.flag('idempotent')
  const guarded = given.flag('guarded')
  return {
    ...given.numbers({
      load: 'load',
      capacity: 'capacity',
      'service-ms': 'serviceMs',
      'queue-limit': 'queueLimit',
      clients: 'clients',
      'trigger-at': 'triggerAtSeconds',
      'trigger-seconds': 'triggerSeconds',
      'trigger-capacity': 'triggerCapacity',
      seconds: 'seconds',
      seed: 'seed',
    }),
    ...(refusal !== undefined && { refusal }),
    ...(idempotent !== undefined && { idempotent }),
    ...(guarded !== undefined && { guarded }),
  }
}

/** Plays the run: in a terminal as a plot that grows, else quietly and then as a table. */
function play(storm: Storm, io: Io, quiet: boolean): StormReport {
  const { columns } = io
  if (quiet || columns === undefined) {
    while (storm.next() !== undefined);
    const report = storm.report()
    if (!quiet) io.write(secondsTable(report))
    return report
  }
  const series = []
  let drawn = 0
  for (let second = storm.next(); second !== undefined; second = storm.next()) {
    series.push(second)
    if (series.length % 2 !== 0 && series.length !== storm.settings.seconds) continue
    const { storm: named, metastableAtSecond } = stormFindings(storm.settings, series)
    const names = `${named ? 'STORM ' : ''}${metastableAtSecond === undefined ? '' : 'METASTABLE'}`
    const [progress = '', ...rest] = stormFrame(storm.settings, series, columns, io.color)
    const lines = [`${progress} ${names}`.slice(0, columns - 1), ...rest]
    // Back to the first line of the frame before, and over it.
    io.write(`${drawn === 0 ? '' : `\u001b[${drawn}F`}${lines.map((line) => `${line}\u001b[K\n`).join('')}`)
    drawn = lines.length
  }
  return storm.report()
}
