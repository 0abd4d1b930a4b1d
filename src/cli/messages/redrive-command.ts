// `reprise redrive`: dead letters go out again, as they are or with other data.

import { defined } from '../../kernel/index.js'
import { deadLetters, type RedriveReport, type WhichLetter } from '../../messaging/index.js'
import type { Io } from '../io.js'
import { type Command, type GivenOptions, UsageError } from '../option-table.js'
import { type CommandStore, commandLimits, storeOptions, withStore } from '../store/open-store.js'
import { jsonOption, writeAnswer } from '../store/output.js'
import { actorOf } from '../store/which-record.js'
import { isOneLetter, letterNamed, letterOptions, lettersNamed, noSuchLetter, noSuchReader } from './which-letter.js'

/** The command `reprise redrive`. */
export const redriveCommand: Command = {
  summary: 'sends dead letters again, as they are or with other data',
  about: `reprise redrive --url URL --reader NAME [--id ID] [options]

Lets messages go again under their own ids, so that whoever had them already knows them; then what waits behind
them in their keys follows, in order. Repair the cause first. One letter goes at once. Many go up to --most, whole
keys in their order, spread over --over; relays and consumers that run take them up. Running it twice does no harm.

With --edit the message goes with other data, under an id that is derived from its own, and its letter is closed
with it. Where the domain has a codec, edit in code: deadLetters(db).edit.

  reprise redrive --url sqlite:data/app.db --reader receipts --code CARD_EXPIRED --reason 'fixed in 4.2'
  reprise redrive --url sqlite:data/app.db --reader receipts --id 0198c0de-… --edit data.json --reason 'no currency'
`,
  options: [
    storeOptions,
    letterOptions,
    {
      title: 'Options',
      options: [
        { name: 'most', kind: 'number', text: 'many: at most this many letters, 1 to 1000 (1000)' },
        {
          name: 'over',
          kind: 'text',
          value: 'DURATION',
          text: 'many: their keys become due spread over this time (1m)',
        },
        { name: 'edit', kind: 'text', value: 'FILE', text: 'one: send the JSON of this file in place of its data' },
        { name: 'reason', kind: 'text', text: 'why; kept with the letter, and mandatory with --edit' },
        { name: 'actor', kind: 'text', value: 'NAME', text: 'who decides; kept with it (the environment’s USER)' },
        jsonOption,
      ],
    },
  ],
  exitCodes: `0 done, 1 it failed, or was interrupted, or may have been written (UPKEEP_UNKNOWN: do it again), 2 used wrongly, 3 there is nothing to redrive: the letter is not there, is decided already, or is closed, or there is no such reader.`,
  run: runRedrive,
}

async function runRedrive(given: GivenOptions, io: Io): Promise<void> {
  const isOne = isOneLetter(given)
  const file = given.text('edit')
  if (file !== undefined && !isOne) throw new UsageError('--edit is for one letter: --reader and --id')
  if (!isOne && !['reader', 'key', 'code'].some((name) => given.has(name))) {
    throw new UsageError('which letters? --reader, --key or --code, or --reader and --id')
  }
  for (const name of ['most', 'over']) {
    if (isOne && given.has(name)) throw new UsageError(`--${name} is for many letters, --id for one`)
  }
  if (file !== undefined && !given.has('reason')) throw new UsageError('--reason is missing: say why it is edited')
  const data = file === undefined ? undefined : await jsonIn(io, file)
  await withStore(given, io, async (store) => {
    if (!isOne) return redriveMany(store, given, io)
    const which = await letterNamed(store, given)
    if (which === undefined) throw noSuchLetter()
    return file === undefined ? redriveOne(store, given, io, which) : editOne(store, given, io, which, data)
  })
}

async function jsonIn(io: Io, file: string): Promise<unknown> {
  const text = await io.readText(file).catch(() => {
    throw new UsageError(`--edit: the file ${file} cannot be read`)
  })
  try {
    return JSON.parse(text)
  } catch {
    throw new UsageError(`--edit: the file ${file} is not JSON`)
  }
}

function byWhom(given: GivenOptions, io: Io) {
  return { actor: actorOf(given, io), deadline: '30s', ...defined({ reason: given.text('reason') }) } as const
}

async function redriveOne(store: CommandStore, given: GivenOptions, io: Io, which: WhichLetter): Promise<void> {
  const { redriven } = await deadLetters(store).redrive(which, byWhom(given, io))
  writeAnswer(given, io, { json: { redriven, id: which.id }, text: 'redriven: its reader takes it up\n' })
}

async function editOne(
  store: CommandStore,
  given: GivenOptions,
  io: Io,
  which: WhichLetter,
  data: unknown,
): Promise<void> {
  const letters = deadLetters(store)
  // Written without the codec it would be readable at rest, which is what the codec is against.
  const { codec } = (await letters.show(which, { deadline: '30s' })) ?? {}
  if (codec !== undefined) {
    throw new UsageError(
      `the data was written by the codec ${codec}, which the command line does not have: edit it in code`,
    )
  }
  const { id } = await letters.edit(which, { ...byWhom(given, io), reason: given.text('reason') ?? '', data })
  writeAnswer(given, io, { json: { redriven: 1, id }, text: `redriven with other data, as ${id}\n` })
}

async function redriveMany(store: CommandStore, given: GivenOptions, io: Io): Promise<void> {
  const shows = !given.has('json') && io.columns !== undefined
  const report = await deadLetters(store).redrive(lettersNamed(given), {
    ...byWhom(given, io),
    ...defined({ most: given.number('most'), over: given.duration('over') }),
    ...defined({ signal: io.untilEnded?.() }),
    onProgress: ({ redriven }) => {
      if (shows) io.complain(`\r${redriven} redriven`)
    },
  })
  if (shows) io.complain('\r\u001b[K')
  const reader = given.text('reader')
  const isNothing = report.redriven + report.elsewhere + report.left === 0
  if (reader !== undefined && isNothing && !(await isReader(store, reader))) throw noSuchReader(reader)
  writeAnswer(given, io, { json: report, text: reportText(report) })
  if (report.interrupted) io.exit(1)
}

async function isReader(store: CommandStore, name: string): Promise<boolean> {
  return (await store.messages.readers(commandLimits())).some((reader) => reader.name === name)
}

function reportText({ redriven, elsewhere, left, interrupted }: RedriveReport): string {
  return [
    `redriven: ${redriven}, left: ${left === 1_000 ? '1000 or more' : left}\n`,
    elsewhere > 0 ? `somebody else decided about ${elsewhere} meanwhile\n` : '',
    interrupted ? 'interrupted: there may be more to redrive\n' : '',
  ].join('')
}
