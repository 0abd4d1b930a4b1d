// The commands, and what happens when one is used wrongly.

import { createRequire } from 'node:module'
import { nearestName } from '../kernel/index.js'
import { complaintOf } from './complaint.js'
import { conformanceCommand } from './conformance/conformance-command.js'
import type { Io } from './io.js'
import { deadLettersCommand } from './messages/dead-letters-command.js'
import { discardCommand } from './messages/discard-command.js'
import { forgetCommand, newEpochCommand, outboxCommand } from './messages/outbox-command.js'
import { redriveCommand } from './messages/redrive-command.js'
import { type Command, commandHelp, readOptions, UsageError } from './option-table.js'
import { jitterCommand } from './simulate/jitter-command.js'
import { stormCommand } from './simulate/storm-command.js'
import { fittedHelp } from './simulate/terminal-plot.js'
import { doctorCommand } from './store/doctor-command.js'
import { inspectCommand } from './store/inspect-command.js'
import { migrateCommand } from './store/migrate-command.js'
import { purgeCommand } from './store/purge-command.js'
import { settleCommand } from './store/settle-command.js'
import { sweepCommand } from './store/sweep-command.js'
import { whyCommand } from './store/why-command.js'

const commands: Readonly<Record<string, Command>> = {
  migrate: migrateCommand,
  doctor: doctorCommand,
  inspect: inspectCommand,
  why: whyCommand,
  sweep: sweepCommand,
  purge: purgeCommand,
  settle: settleCommand,
  outbox: outboxCommand,
  'outbox new-epoch': newEpochCommand,
  'outbox forget': forgetCommand,
  'dead-letters': deadLettersCommand,
  redrive: redriveCommand,
  discard: discardCommand,
  conformance: conformanceCommand,
  'simulate storm': stormCommand,
  'simulate jitter': jitterCommand,
}

const usage = `${Object.entries(commands)
  .map(([name, { summary }]) => `${`reprise ${name}`.padEnd(26)}${summary}\n`)
  .join('')}
For example: reprise inspect --url sqlite:data/app.db --state unknown

Each command explains itself with --help. reprise --version names this version.
`

// The package is as far from the sources as from what is built of them.
const packageVersion = (): string => createRequire(import.meta.url)('../../package.json').version

/**
 * Runs a command line (without the program's name). The exit code is 0, 1 if something failed, 2 if it was used
 * wrongly, or what the command's help says.
 */
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

/** The name of the command that a line begins with: two words or one. */
function commandName([first = '', second = '']: readonly string[]): string | undefined {
  return [`${first} ${second}`, first].find((name) => Object.hasOwn(commands, name))
}

function helpFor(args: readonly string[]): string {
  return commandName(args) ?? (args[0] === 'simulate' ? 'simulate storm' : '')
}

async function dispatch(args: readonly string[], io: Io): Promise<void> {
  const asked = args.includes('--help') || args.includes('-h')
  const name = commandName(args)
  const command = name === undefined ? undefined : commands[name]
  if (name !== undefined && command !== undefined) {
    if (asked) io.write(fittedHelp(commandHelp(command), io.columns))
    else await command.run(readOptions(optionsAfter(name, command, args), command.options), io)
    return
  }
  const [first, second] = args
  if (first === '--version' || first === '-v') {
    io.write(`${packageVersion()}\n`)
    return
  }
  if (asked || first === undefined) {
    io.write(fittedHelp(usage, io.columns))
    return
  }
  if (first !== 'simulate') {
    const nearest = nearestName(first, Object.keys(commands))
    throw new UsageError(`Unknown command: ${first}${nearest === undefined ? '' : `; did you mean ${nearest}?`}`)
  }
  throw new UsageError(
    second === undefined ? 'simulate what? storm or jitter' : `Cannot simulate ${second}: storm or jitter`,
  )
}

/** The words after the command's name. A first word without dashes is the value of the command's argument. */
function optionsAfter(name: string, { argument }: Command, args: readonly string[]): readonly string[] {
  const words = args.slice(name.split(' ').length)
  const [word, ...others] = words
  if (argument === undefined || word === undefined || word.startsWith('-')) return words
  return [`--${argument}=${word}`, ...others]
}
