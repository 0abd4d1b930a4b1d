// The commands, and what happens when one is used wrongly.

import { isRepriseError } from '../kernel/index.js'
import { type Io, printable } from './io.js'
import { type GivenOptions, type OptionGroup, readOptions, UsageError } from './option-table.js'
import { jitterCommand, jitterHelp, jitterOptions } from './simulate/jitter-command.js'
import { stormCommand, stormHelp, stormOptions } from './simulate/storm-command.js'
import { fitted } from './simulate/terminal-plot.js'

interface Command {
  readonly options: readonly OptionGroup[]
  readonly help: () => string
  readonly run: (given: GivenOptions, io: Io) => Promise<void>
}

const simulations: Readonly<Record<string, Command>> = {
  storm: { options: stormOptions, help: stormHelp, run: stormCommand },
  jitter: { options: jitterOptions, help: jitterHelp, run: jitterCommand },
}

const usage = `reprise simulate storm    what a policy does to a service that is in trouble
reprise simulate jitter   how contending clients get on, by kind of backoff

For example: reprise simulate storm --attempts 6 --budget none
Each command explains itself with --help.
`

/** Runs a command line (without the program's name). Ends with 0, or 2 if it was used wrongly, or 1 if something failed. */
export async function runCommandLine(args: readonly string[], io: Io): Promise<void> {
  io.exit(0)
  try {
    await dispatch(args, io)
  } catch (error) {
    const wrong = error instanceof UsageError || isRepriseError(error)
    const code = wrong && error.code !== undefined ? ` [${error.code}]` : ''
    io.complain(`reprise: ${error instanceof Error ? printable(error.message) : 'something failed'}${code}\n`)
    if (wrong) io.complain('See reprise simulate storm --help.\n'.replace('storm', simulationOf(args) ?? 'storm'))
    io.exit(wrong ? 2 : 1)
  }
}

function simulationOf([first, second = '']: readonly string[]): string | undefined {
  return first === 'simulate' && Object.hasOwn(simulations, second) ? second : undefined
}

async function dispatch(args: readonly string[], io: Io): Promise<void> {
  const asked = args.includes('--help') || args.includes('-h')
  const name = simulationOf(args)
  if (name !== undefined) {
    const { options, help, run } = simulations[name] as Command
    if (asked) io.write(fitted(help(), io.columns))
    else await run(readOptions(args.slice(2), options), io)
    return
  }
  const [first, second] = args
  if (asked || first === undefined) {
    io.write(fitted(usage, io.columns))
    return
  }
  if (first !== 'simulate') throw new UsageError(`Unknown command: ${first}`)
  throw new UsageError(
    second === undefined ? 'simulate what? storm or jitter' : `Cannot simulate ${second}: storm or jitter`,
  )
}
