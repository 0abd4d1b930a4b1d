// `reprise inspect`: what a store knows of one key, or which records it holds.

import { inspectionOf, type NamedRecord, type RecordState, type StoredRecord } from '../../atomicity/index.js'
import type { StoredKey } from '../../identity/index.js'
import { defined } from '../../kernel/index.js'
import { type Io, printable } from '../io.js'
import { type Command, type GivenOptions, UsageError } from '../option-table.js'
import { elsewhereText, mostListed, newest, underOtherScopes } from './find-records.js'
import { type CommandStore, commandLimits, storeOptions, withStore } from './open-store.js'
import { age, jsonOption, moment, recordJson, writeAnswer } from './output.js'
import { howToName, idIn, type NamedParts, partsNamed, recordOptions } from './which-record.js'

const states = ['claimed', 'succeeded', 'failed', 'unknown'] as const

/** The command `reprise inspect`. */
export const inspectCommand: Command = {
  summary: 'what is known of a key, or which records there are',
  about: `reprise inspect --url URL [options]

Shows one record with the notes about it, or lists records, newest first. Keys are stored as digests, so a
record is found by what it was made of: the operation, the scope and the key, or for a request the route, its
caller and the key. A key without a record was never used here, was released, or is past its window; where the
newest records hold the same key under another scope, that is said.

  reprise inspect --url sqlite:data/app.db --state unknown
  reprise inspect --url sqlite:data/app.db --route pay --principal ada --key 0198c0de-…
  reprise inspect --url sqlite:data/app.db --operation pay --scope tenant-7 --key 0198c0de-…

What is read: of one record, its row. A list looks at the 1,000 records whose memory ends last, the 1,000 that
wait for a look, and the first 10,000 by name, all by indexes: of a larger table it shows the newest outcomes,
but perhaps not all that wait for a person. --state unknown and --state claimed show those: they look for up to
1,000 that match, and may read the whole table for it. --by-name goes through all records in pages.
`,
  options: [
    storeOptions,
    recordOptions,
    {
      title: 'Options',
      options: [
        { name: 'state', kind: 'choice', choices: states, text: 'list only records in this state' },
        { name: 'limit', kind: 'number', text: 'list at most this many, 1 to 1000 (50)' },
        { name: 'by-name', kind: 'flag', text: 'list in the order of their names, in pages, in place of newest first' },
        { name: 'after', kind: 'text', value: 'ID', text: 'by name: go on after this record' },
        { name: 'values', kind: 'flag', text: 'show outcomes and kept inputs as they are stored; they may be private' },
        jsonOption,
      ],
    },
  ],
  exitCodes: '0 shown, 1 it failed, 2 used wrongly, 3 there is no such record.',
  run: runInspect,
}

async function runInspect(given: GivenOptions, io: Io): Promise<void> {
  const parts = partsNamed(given)
  if (parts.id === undefined && parts.key !== undefined) throw new UsageError(howToName)
  const limit = given.number('limit') ?? 50
  if (!Number.isInteger(limit) || limit < 1 || limit > mostListed) throw new UsageError('--limit is from 1 to 1000')
  await withStore(given, io, (store) =>
    parts.id === undefined
      ? list(store, given, io, { ...parts, limit })
      : showOne(store, given, io, parts, idIn(store, parts.id)),
  )
}

async function showOne(
  store: CommandStore,
  given: GivenOptions,
  io: Io,
  parts: NamedParts,
  id: StoredKey,
): Promise<void> {
  const { record, nowMs } = await store.records.read(id, commandLimits())
  const notes = (await store.records.inspection?.notes(id, commandLimits())) ?? []
  const shown = record === undefined ? null : recordJson(id, record, given.has('values'))
  const elsewhere = record === undefined ? await underOtherScopes(store, parts) : []
  const lines = notes.map(
    ({ atMs, action, actor, from, to, reason }) =>
      `note ${moment(atMs)} ${action} by ${printable(actor)}: ${from} -> ${to}: ${printable(reason)}\n`,
  )
  const absent = ['there is no such record\n', ...elsewhere.map(elsewhereText)].join('')
  const text = `${record === undefined ? absent : recordText(shown, record, nowMs)}${lines.join('')}`
  const json = { id, nowMs, record: shown, notes, ...(elsewhere.length === 0 ? {} : { elsewhere }) }
  writeAnswer(given, io, { json, text })
  if (record === undefined) io.exit(3)
}

function recordText(shown: object | null, { state, mode }: StoredRecord, nowMs: number): string {
  const line = (name: string, value: unknown): string => `${name.replace(/AtMs$/, 'At').padEnd(15)} ${value}\n`
  const members = Object.entries(shown ?? {})
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) =>
      line(
        name,
        name.endsWith('AtMs') && typeof value === 'number'
          ? `${moment(value)}, ${age(value, nowMs)}`
          : printable(value),
      ),
    )
  const advice =
    state === 'unknown'
      ? 'It may or may not have happened: find out, then reprise settle.\n'
      : state === 'claimed' && mode === 'atomic'
        ? 'It was committed without an outcome: look for its effect, then reprise settle.\n'
        : ''
  return `${members.join('')}${line('now', moment(nowMs))}${advice}`
}

async function list(
  store: CommandStore,
  given: GivenOptions,
  io: Io,
  { operation, scope, limit }: NamedParts & { readonly limit: number },
): Promise<void> {
  const state = given.text('state') as RecordState | undefined
  const after = given.text('after') as StoredKey | undefined
  const isByName = given.has('by-name') || after !== undefined
  if (isByName && scope !== undefined) throw new UsageError('--by-name and --after list operations, and no scope')
  const found = isByName
    ? await inspectionOf(store.records).list({ limit, ...defined({ operation, state, after }) }, commandLimits())
    : await newest(store, { operation, scope: scope && (store.records.pepper?.hide(scope) ?? scope), state, limit })
  const more = found.length === limit
  const records = found.map(({ id, record }) => recordJson(id, record, given.has('values')))
  const next = isByName
    ? `there may be more: --after ${found.at(-1)?.id}\n`
    : 'there may be more: --limit, or --by-name\n'
  const [first] = found
  const nowMs = first === undefined ? 0 : (await store.records.read(first.id, commandLimits())).nowMs
  const lines = found.map((one) => lineOf(one, nowMs)).join('')
  writeAnswer(given, io, {
    json: { records, more },
    text: first === undefined ? 'no records\n' : `${lines}${more ? next : ''}`,
  })
}

function lineOf({ id, record }: NamedRecord, nowMs: number): string {
  const { state, operation = '(transaction)', claimedAtMs, completedAtMs, because } = record
  const when = completedAtMs === undefined ? `claimed ${age(claimedAtMs, nowMs)}` : `ended ${age(completedAtMs, nowMs)}`
  return `${id}  ${state.padEnd(9)}  ${printable(operation)}  ${when}${because === undefined ? '' : `  ${printable(because)}`}\n`
}
