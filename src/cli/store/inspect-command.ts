// `reprise inspect`: what a store knows of one key, or which records it holds.

import { inspectionOf, type NamedRecord, type RecordState, type StoredRecord } from '../../atomicity/index.js'
import type { StoredKey } from '../../identity/index.js'
import { defined } from '../../kernel/index.js'
import { type Io, printable } from '../io.js'
import { type Command, type GivenOptions, UsageError } from '../option-table.js'
import { type CommandStore, commandLimits, storeOptions, withStore } from './open-store.js'
import { jsonOption, moment, recordJson, writeAnswer } from './output.js'
import { recordNamed, recordOptions } from './which-record.js'

const states = ['claimed', 'succeeded', 'failed', 'unknown'] as const
const mostListed = 1_000

/** The command `reprise inspect`. */
export const inspectCommand: Command = {
  summary: 'what is known of a key, or which records there are',
  about: `reprise inspect --url URL [options]

Shows one record with the notes about it, or lists records. Keys are stored as digests, so a record is found
by the operation, the scope and the key together. A key without a record was never used here, was released, or
is past its window.

  reprise inspect --url sqlite:data/app.db --state unknown
  reprise inspect --url sqlite:data/app.db --operation pay --scope tenant-7 --key 0198c0de-…
`,
  options: [
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
  ],
  exitCodes: '0 shown, 1 it failed, 2 used wrongly, 3 there is no such record.',
  run: runInspect,
}

async function runInspect(given: GivenOptions, io: Io): Promise<void> {
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
  const shown = record === undefined ? null : recordJson(id, record, given.has('values'))
  const lines = notes.map(
    ({ atMs, action, actor, from, to, reason }) =>
      `note ${moment(atMs)} ${action} by ${printable(actor)}: ${from} -> ${to}: ${printable(reason)}\n`,
  )
  const text = `${record === undefined ? 'there is no such record\n' : recordText(shown, record, nowMs)}${lines.join('')}`
  writeAnswer(given, io, { json: { id, nowMs, record: shown, notes }, text })
  if (record === undefined) io.exit(3)
}

function recordText(shown: object | null, { state, mode }: StoredRecord, nowMs: number): string {
  const line = (name: string, value: unknown): string => `${name.replace(/AtMs$/, 'At').padEnd(15)} ${value}\n`
  const members = Object.entries(shown ?? {})
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) =>
      line(name, name.endsWith('AtMs') && typeof value === 'number' ? moment(value) : printable(value)),
    )
  const advice =
    state === 'unknown'
      ? 'It may or may not have happened: find out, then reprise settle.\n'
      : state === 'claimed' && mode === 'atomic'
        ? 'It was committed without an outcome: look for its effect, then reprise settle.\n'
        : ''
  return `${members.join('')}${line('now', moment(nowMs))}${advice}`
}

async function list(store: CommandStore, given: GivenOptions, io: Io, limit: number): Promise<void> {
  const query = defined({
    state: given.text('state') as RecordState | undefined,
    operation: given.text('operation'),
    after: given.text('after') as StoredKey | undefined,
  })
  const found = await inspectionOf(store.records).list({ limit, ...query }, commandLimits())
  const more = found.length === limit
  const records = found.map(({ id, record }) => recordJson(id, record, given.has('values')))
  const next = more ? `there may be more: --after ${found.at(-1)?.id}\n` : ''
  const text = found.length === 0 ? 'no records\n' : `${found.map(lineOf).join('')}${next}`
  writeAnswer(given, io, { json: { records, more }, text })
}

function lineOf({ id, record }: NamedRecord): string {
  const { state, operation = '(transaction)', claimedAtMs, completedAtMs, because } = record
  const when = completedAtMs === undefined ? `claimed ${moment(claimedAtMs)}` : `ended ${moment(completedAtMs)}`
  return `${id}  ${state.padEnd(9)}  ${printable(operation)}  ${when}${because === undefined ? '' : `  ${printable(because)}`}\n`
}
