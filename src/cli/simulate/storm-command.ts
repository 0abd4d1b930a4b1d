// `reprise simulate storm`: what a policy does to a service that loses most of its capacity for a while.

import { defined, isRepriseError } from '../../kernel/index.js'
import { type Refusal, Storm, type StormOptions, type StormReport } from '../../simulator/index.js'
import type { Io } from '../io.js'
import { type Command, type GivenOptions, type OptionGroup, UsageError } from '../option-table.js'
import { checkOutputs, outputOptions, writeOutputs } from './outputs.js'
import { peerBudgetOf, peerOptions } from './peer-options.js'
import { givenPolicy } from './policy-file.js'
import { policyOptions, policyWith } from './policy-options.js'
import {
  leastFrameColumns,
  policyWords,
  sceneWords,
  secondsTable,
  stormChart,
  stormFrame,
  summary,
  verdictLine,
} from './storm-text.js'
import { fitted } from './terminal-plot.js'

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

/** The command `reprise simulate storm`. */
export const stormCommand: Command = {
  summary: 'what a policy does to a service that is in trouble',
  about: `reprise simulate storm [options]

Plays a service that loses most of its capacity for ten seconds, and clients that repeat what timed out. The
decisions are those of the real policy code; the same seed gives the same run.

  reprise simulate storm --attempts 6 --budget none           the storm stays when its cause is gone
  reprise simulate storm --attempts 6                         the budget ends it
  reprise simulate storm --attempts 6 --most 20               a limit for each client keeps it from beginning
  reprise simulate storm --policy policy.json --svg out.svg   your own policy, drawn
  reprise simulate storm --policy grpc.json --method shop.Orders/Find   that of a gRPC service config

The last line says: recovered, no trouble (the run is over before the trigger did harm), STORM (more than 4
requests for each intent over ten seconds), or METASTABLE (twenty seconds after the trigger the service is
still down, and its queue is not shrinking).
`,
  options: [...policyOptions, ...peerOptions, ...scene, ...outputOptions],
  run: runStorm,
}

async function runStorm(given: GivenOptions, io: Io): Promise<void> {
  const policy = policyWith(given, await givenPolicy(given, io))
  const storm = stormOf({ policy, ...sceneOf(given), peerBudget: peerBudgetOf(given) })
  await checkOutputs(given, io)
  const quiet = given.text('json') === ''
  const say = (text: string): void => (quiet ? undefined : io.write(fitted(text, io.columns)))
  say(`${policyWords(storm.settings)}\n${sceneWords(storm.settings)}\n\n`)
  const report = play(storm, io, quiet)
  say(`\n${summary(report)}`)
  await writeOutputs(given, io, { json: report, chart: stormChart(report) })
  say(`${verdictLine(report)}\n`)
}

function stormOf(options: StormOptions): Storm {
  try {
    return new Storm(options)
  } catch (error) {
    if (!isRepriseError(error, 'SIMULATION_UNSUPPORTED')) throw error
    throw new UsageError(`${error.message} Here that is --no-hedge.`, error.code)
  }
}

function sceneOf(given: GivenOptions): Omit<StormOptions, 'policy'> {
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
    ...defined({
      refusal: given.text('refusal') as Refusal | undefined,
      idempotent: given.flag('idempotent'),
      guarded: given.flag('guarded'),
    }),
  }
}

/** Runs the simulation. In a terminal wide enough the plot grows while it runs; without a terminal a table follows. */
function play(storm: Storm, io: Io, quiet: boolean): StormReport {
  const { columns } = io
  if (quiet || columns === undefined || columns < leastFrameColumns) {
    while (storm.next() !== undefined);
    const report = storm.report()
    if (!quiet && columns === undefined) io.write(secondsTable(report))
    return report
  }
  const series = []
  let drawn = 0
  for (let second = storm.next(); second !== undefined; second = storm.next()) {
    series.push(second)
    if (series.length % 2 !== 0 && series.length !== storm.settings.seconds) continue
    const lines = stormFrame(storm.settings, series, columns, io.color)
    // Moves the cursor back to the first line of the previous frame, to draw over it.
    io.write(`${drawn === 0 ? '' : `\u001b[${drawn}F`}${lines.map((line) => `${line}\u001b[K\n`).join('')}`)
    drawn = lines.length
  }
  return storm.report()
}
