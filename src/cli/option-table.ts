// Commands and their options as data: one entry says how an option is read, checked and explained.

import { type Duration, type ErrorCode, nearestName } from '../kernel/index.js'
import type { Io } from './io.js'

/** An option: `--name VALUE` or `--name=VALUE`; a flag stands alone. */
export interface Option {
  /** Without dashes. */
  readonly name: string
  /** What kind of value it takes. `maybe-text` may be given without a value; `texts` may be given more than once. */
  readonly kind: 'number' | 'choice' | 'text' | 'maybe-text' | 'texts' | 'flag'
  /** For a choice: the allowed values. */
  readonly choices?: readonly string[]
  /** For a flag: the name of the flag that means the opposite. */
  readonly opposite?: string
  /** What the help calls the value. */
  readonly value?: string
  /** What it does, with the default in parentheses. */
  readonly text: string
}

/** Options under a heading of the help. */
export interface OptionGroup {
  readonly title: string
  readonly options: readonly Option[]
}

/** A command: its options, its help and what it does. */
export interface Command {
  /** One line in the list of all commands. */
  readonly summary: string
  /** The help above the table of options: how it is called, what it does, and examples. */
  readonly about: string
  readonly options: readonly OptionGroup[]
  /** The help below the table. Default: nothing. */
  readonly exitCodes?: string
  /** The option whose value may be given as the first word, without its name. Default: none. */
  readonly argument?: string
  run(given: GivenOptions, io: Io): Promise<void>
}

/** The command was used wrongly. The message is one line for the user. */
export class UsageError extends Error {
  override readonly name: string = 'UsageError'
  /** The code of the error, where one of the modules below refused the value. */
  readonly code: ErrorCode | undefined

  constructor(message: string, code?: ErrorCode) {
    super(message)
    this.code = code
  }
}

type OptionValue = string | number | boolean | readonly string[]

/** The options of one command line. */
export class GivenOptions {
  readonly #values: ReadonlyMap<string, OptionValue>

  constructor(values: ReadonlyMap<string, OptionValue>) {
    this.#values = values
  }

  has(name: string): boolean {
    return this.#values.has(name)
  }

  number(name: string): number | undefined {
    return this.#values.get(name) as number | undefined
  }

  /** The value of a choice or text, if given; empty for a `maybe-text` without a value. */
  text(name: string): string | undefined {
    return this.#values.get(name) as string | undefined
  }

  /** A duration, if given: a text with a unit, or a number of ms, as in code. */
  duration(name: string): Duration | undefined {
    const text = this.text(name)
    return text !== undefined && /^\d+$/.test(text) ? Number(text) : (text as Duration | undefined)
  }

  /** All values of a `texts` option, in order, if any was given. */
  texts(name: string): readonly string[] | undefined {
    return this.#values.get(name) as readonly string[] | undefined
  }

  /** True for the flag, false for its opposite, undefined where neither was given. */
  flag(name: string): boolean | undefined {
    return this.#values.get(name) as boolean | undefined
  }

  /** The numbers that were given. Keys are names of options, values the members they become. */
  numbers<Name extends string>(names: Readonly<Record<string, Name>>): { [Key in Name]?: number } {
    const found: { [Key in Name]?: number } = {}
    for (const [option, name] of Object.entries(names)) {
      const value = this.number(option)
      if (value !== undefined) found[name] = value
    }
    return found
  }
}

/** Reads a command line. Throws a {@link UsageError} for what the table does not allow. */
export function readOptions(args: readonly string[], groups: readonly OptionGroup[]): GivenOptions {
  const options = groups.flatMap((group) => group.options)
  const values = new Map<string, OptionValue>()
  for (let place = 0; place < args.length; place += 1) {
    const [, written, , inline] = /^--([^=]+)(=(.*))?$/s.exec(args[place] as string) ?? []
    if (written === undefined) throw new UsageError(`Unexpected argument: ${args[place]}`)
    const option = options.find(({ name, opposite }) => name === written || opposite === written)
    if (option === undefined) throw new UsageError(unknown(written, options))
    const before = values.get(option.name)
    if (before !== undefined && option.kind !== 'texts') throw new UsageError(`--${option.name} is given twice`)
    if (option.kind === 'flag') {
      if (inline !== undefined) throw new UsageError(`--${written} takes no value`)
      values.set(option.name, written === option.name)
      continue
    }
    const following = args[place + 1]
    const follows = inline === undefined && following !== undefined && !/^--/.test(following)
    if (follows) place += 1
    const value = readValue(option, inline ?? (follows ? following : undefined))
    values.set(option.name, option.kind === 'texts' ? [...((before as readonly string[]) ?? []), String(value)] : value)
  }
  return new GivenOptions(values)
}

function readValue({ name, kind, choices = [] }: Option, value: string | undefined): string | number {
  if (kind === 'maybe-text') return value ?? ''
  if (value === undefined || value === '') throw new UsageError(`--${name} needs a value`)
  if (kind === 'choice' && !choices.includes(value)) {
    throw new UsageError(`--${name} is one of ${choices.join(', ')}; not ${value}`)
  }
  if (kind !== 'number') return value
  if (!/^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(value)) throw new UsageError(`--${name} takes a number; not ${value}`)
  return Number(value)
}

function unknown(written: string, options: readonly Option[]): string {
  const names = options.flatMap(({ name, opposite }) => (opposite === undefined ? [name] : [name, opposite]))
  const nearest = nearestName(written, names)
  return `Unknown option: --${written}${nearest === undefined ? '' : `; did you mean --${nearest}?`}`
}

/** The help of a command. */
export function commandHelp({ about, options, exitCodes }: Command): string {
  return `${about}\n${optionHelp(options)}${exitCodes === undefined ? '' : `\nExit codes: ${exitCodes}\n`}`
}

/** The options as lines of the help. */
export function optionHelp(groups: readonly OptionGroup[]): string {
  const width = 30
  const line = (option: Option): string => {
    const { name, kind, opposite, choices, value = kind === 'number' ? 'N' : 'TEXT' } = option
    const shown = choices === undefined ? value : choices.join('|')
    const taken = kind === 'flag' ? (opposite === undefined ? '' : `, --${opposite}`) : ` ${shown}`
    const start = `  --${name}${kind === 'maybe-text' ? ` [${value}]` : taken}`
    return start.length < width
      ? `${start.padEnd(width)}${option.text}`
      : `${start}\n${' '.repeat(width)}${option.text}`
  }
  return groups.map(({ title, options }) => `${title}\n${options.map(line).join('\n')}\n`).join('\n')
}
