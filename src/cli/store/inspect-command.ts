// `reprise inspect`: what a store knows of one key, or which records it holds.

import { inspectionOf, type NamedRecord, type RecordState } from '../../atomicity/index.js'
import type { StoredKey } from '../../identity/index.js'
import { type Io, printable } from '../io.js'
import { type GivenOptions, type OptionGroup, optionHelp, UsageError } from '../option-table.js'
import { type CommandStore, commandLimits, storeOptions, withStore } from './open-store.js'
import { jsonOption, moment, recordJson, writeJson } from './output.js'
import { recordNamed, recordOptions } from './which-record.js'

const states = ['claimed', 'succeeded', 'failed', 'unknown'] as const
const mostListed = 1_000

/** The options of the command. */
export const inspectOptions: readonly OptionGroup[] = [
  storeOptions,
  recordOptions,
  {
    title: 'Options',
    options: [
      { name: 'state', kind: 'choice', choices: states, text: 'list only records in this state' },
      { name: 'limit', kind: 'number', text: 'list at most this many, 1 to 1000 (50)' },
      { name: 'after', kind: 'text', value: 'ID', text: 'go on after this record' },
      { name: 'values', kind: 'flag', text: 'show outcomes and kept inputs as they are stored; they may be private' },
      jsonOption,
    ],
  },
]

/** The help of the command. */
export function inspectHelp(): string {
  return `reprise inspect --url URL [options]

Shows one record with the notes about it, or lists records. Keys are stored as digests, so a record is found by the operation, the scope and the key
together. A key without a record was never used here, was released, or is past its window.

  reprise inspect --url sqlite:data/app.db --state unknown
  reprise inspect --url sqlite:data/app.db --operation pay --scope tenant-7 --key 0198c0de-…

${optionHelp(inspectOptions)}
Exit codes: 0 shown, 1 it failed, 2 used wrongly, 3 there is no such record.
`
}

/** Runs the command. */
export async function inspectCommand(given: GivenOptions, io: Io): Promise<void> {
  const id = recordNamed(given)
  const limit = given.number('limit') ?? 50
  if (!Number.isInteger(limit) || limit < 1 || limit > mostListed) throw new UsageError('--limit is from 1 to 1000')
  await withStore(given, io, (store) =>
    id === undefined ? list(store, given, io, limit) : showOne(store, given, io, id),
  )
}

async function showOne(store: CommandStore, given: GivenOptions, io: Io, id: StoredKey): Promise<void> {
  const { record, nowMs } = await store.records.read(id, commandLimits())
  const notes = (await store.records.inspection?.notes(id, commandLimits())) ?? []
  const withValue = given.flag('values') === true
  if (given.has('json')) {
    writeJson(io, { id, nowMs, record: record === undefined ? null : recordJson(id, record, withValue), notes })
  } else if (record === undefined) {
    io.write('there is no such record\n')
  } else {
    for (const [name, value] of Object.entries(recordJson(id, record, withValue))) {
      if (value !== undefined) io.write(`${name.replace(/AtMs$/, 'At').padEnd(15)} ${shown(name, value)}\n`)
    }
    io.write(`${'now'.padEnd(15)} ${moment(nowMs)}\n`)
    if (record.state === 'unknown') io.write('It may or may not have happened: find out, then reprise settle.\n')
    if (record.state === 'claimed' && record.mode === 'atomic') {
      io.write('It was committed without an outcome: look for its effect, then reprise settle.\n')
    }
  }
  if (!given.has('json')) {
    for (const { atMs, action, actor, from, to, reason } of notes) {
      io.write(`note ${moment(atMs)} ${action} by ${printable(actor)}: ${from} -> ${to}: ${printable(reason)}\n`)
    }
  }
  if (record === undefined) io.exit(3)
}

function shown(name: string, value: unknown): string {
  return name.endsWith('AtMs') && typeof value === 'number' ? moment(value) : printable(value)
}

async function list(store: CommandStore, given: GivenOptions, io: Io, limit: number): Promise<void> {
  const [state, operation, after] = [given.text('state'), given.text('operation'), given.text('after')]
  const found = await inspectionOf(store.records).list(
    {
      limit,
      ...(state === undefined ? {} : { state: state as RecordState }),
      ...(operation === undefined ? {} : { operation }),
      ...(after === undefined ? {} : { after: after as StoredKey }),
    },
    commandLimits(),
  )
  const withValue = given.flag('values') === true
  if (given.has('json')) {
    writeJson(io, {
      records: found.map(({ id, record }) => recordJson(id, record, withValue)),
      more: found.length === limit,
    })
    return
  }
  if (found.length === 0) io.write('no records\n')
  for (const named of found) io.write(lineOf(named))
  if (found.length === limit) io.write(`there may be more: --after ${found.at(-1)?.id}\n`)
}

function lineOf({ id, record }: NamedRecord): string {
  const { state, operation = '(transaction)', claimedAtMs, completedAtMs, because } = record
  const when = completedAtMs === undefined ? `claimed ${moment(claimedAtMs)}` : `ended ${moment(completedAtMs)}`
  return `${id}  ${state.padEnd(9)}  ${printable(operation)}  ${when}${because === undefined ? '' : `  ${printable(because)}`}\n`
}
