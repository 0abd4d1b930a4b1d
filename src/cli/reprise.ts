// The commands, and what happens when one is used wrongly.

import { complaintOf } from './complaint.js'
import { conformanceCommand, conformanceHelp, conformanceOptions } from './conformance/conformance-command.js'
import type { Io } from './io.js'
import { type GivenOptions, type OptionGroup, readOptions, UsageError } from './option-table.js'
import { jitterCommand, jitterHelp, jitterOptions } from './simulate/jitter-command.js'
import { stormCommand, stormHelp, stormOptions } from './simulate/storm-command.js'
import { fitted } from './simulate/terminal-plot.js'
import { doctorCommand, doctorHelp, doctorOptions } from './store/doctor-command.js'
import { inspectCommand, inspectHelp, inspectOptions } from './store/inspect-command.js'
import { migrateCommand, migrateHelp, migrateOptions } from './store/migrate-command.js'
import { purgeCommand, purgeHelp, purgeOptions } from './store/purge-command.js'
import { settleCommand, settleHelp, settleOptions } from './store/settle-command.js'
import { sweepCommand, sweepHelp, sweepOptions } from './store/sweep-command.js'

interface Command {
  readonly options: readonly OptionGroup[]
  readonly help: () => string
  readonly run: (given: GivenOptions, io: Io) => Promise<void>
  /** The option that a first word without dashes is the value of. */
  readonly argument?: string
}

/** By their words. */
const commands: Readonly<Record<string, Command>> = {
  migrate: { options: migrateOptions, help: migrateHelp, run: migrateCommand },
  doctor: { options: doctorOptions, help: doctorHelp, run: doctorCommand },
  inspect: { options: inspectOptions, help: inspectHelp, run: inspectCommand },
  sweep: { options: sweepOptions, help: sweepHelp, run: sweepCommand },
  purge: { options: purgeOptions, help: purgeHelp, run: purgeCommand },
  settle: { options: settleOptions, help: settleHelp, run: settleCommand },
  conformance: { options: conformanceOptions, help: conformanceHelp, run: conformanceCommand, argument: 'url' },
  'simulate storm': { options: stormOptions, help: stormHelp, run: stormCommand },
  'simulate jitter': { options: jitterOptions, help: jitterHelp, run: jitterCommand },
}

const usage = `reprise migrate           makes or extends Reprise's tables in a database
reprise doctor            what in its settings would break a promise
reprise inspect           what is known of a key, or which records there are
reprise sweep             drives claims whose owner is gone to an outcome
reprise purge             forgets what is past its window
reprise settle            decides an unknown outcome, with a reason
reprise conformance       what a server with Idempotency-Key does, case by case
reprise simulate storm    what a policy does to a service that is in trouble
reprise simulate jitter   how contending clients get on, by kind of backoff

For example: reprise inspect --url sqlite:data/app.db --state unknown
Each command explains itself with --help.
`

/** Runs a command line (without the program's name). Ends with 0, or 1 if something failed, 2 if it was used wrongly, or what its help says. */
export async function runCommandLine(args: readonly string[], io: Io): Promise<void> {
  io.exit(0)
  try {
    await dispatch(args, io)
  } catch (error) {
    const { line, exitCode } = complaintOf(error)
    io.complain(`reprise: ${line}\n`)
    if (exitCode === 2) io.complain(`See ${['reprise', helpFor(args), '--help'].filter(Boolean).join(' ')}.\n`)
    io.exit(exitCode)
  } finally {
    io.over?.()
  }
}

function commandOf([first = '', second = '']: readonly string[]):
  | { readonly name: string; readonly command: Command; readonly words: number }
  | undefined {
  for (const [name, words] of [[`${first} ${second}`, 2] as const, [first, 1] as const]) {
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined
    if (command !== undefined) return { name, command, words }
  }
  return undefined
}

function helpFor(args: readonly string[]): string {
  return commandOf(args)?.name ?? (args[0] === 'simulate' ? 'simulate storm' : '')
}

async function dispatch(args: readonly string[], io: Io): Promise<void> {
  const asked = args.includes('--help') || args.includes('-h')
  const found = commandOf(args)
  if (found !== undefined) {
    const { options, help, run, argument } = found.command
    const [word, ...others] = args.slice(found.words)
    const given =
      argument === undefined || word === undefined || word.startsWith('-')
        ? args.slice(found.words)
        : [`--${argument}=${word}`, ...others]
    if (asked) io.write(fitted(help(), io.columns))
    else await run(readOptions(given, options), io)
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
