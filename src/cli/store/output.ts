// How the commands print: text for people, JSON for programs.

import type { StoredRecord } from '../../atomicity/index.js'
import { isoTime } from '../../kernel/index.js'
import type { Io } from '../io.js'
import type { GivenOptions, Option } from '../option-table.js'

/** `--json` of every command. */
export const jsonOption: Option = { name: 'json', kind: 'flag', text: 'answer as JSON' }

/** Writes the answer: on one line as JSON where the options ask for it, else as text. */
export function writeAnswer(
  given: GivenOptions,
  io: Io,
  answer: { readonly json: unknown; readonly text: string },
): void {
  io.write(given.has('json') ? `${JSON.stringify(answer.json)}\n` : answer.text)
}

/** A time as ISO 8601 in UTC, or a dash. */
export function moment(atMs: number | undefined): string {
  return atMs === undefined ? '-' : isoTime(atMs)
}

const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const

/** How long ago a time was, or how far ahead it is, in words: `3 minutes ago`, `in 2 hours`. */
export function age(atMs: number, nowMs: number): string {
  const ms = Math.abs(nowMs - atMs)
  if (ms < 1_000) return 'just now'
  return atMs > nowMs ? `in ${inWords(ms)}` : `${inWords(ms)} ago`
}

/** A length of time in words, in the largest unit that fits: `3 minutes`. */
export function inWords(ms: number): string {
  const [unit, size] = units.find(([, least]) => ms >= least) ?? ['second', 1_000]
  const count = Math.floor(ms / size)
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

/** A record as JSON. The outcome and the input are left out unless asked for, since they may be private. */
export function recordJson(id: string, record: StoredRecord, withValue: boolean): Readonly<Record<string, unknown>> {
  const { value, input, ...rest } = record
  return {
    id,
    ...rest,
    ...(withValue ? { value, input } : { valueLength: value?.length, inputLength: input?.length }),
  }
}
