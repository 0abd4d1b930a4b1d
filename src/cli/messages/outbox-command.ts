// `reprise outbox`: how far relays and consumers are; new epochs after a restore; a reader that does not come back.

import { gauges, type ReaderGauges } from '../../messaging/index.js'
import { type Io, printable } from '../io.js'
import { type Command, type GivenOptions, UsageError } from '../option-table.js'
import { commandLimits, storeOptions, withStore } from '../store/open-store.js'
import { inWords, jsonOption, writeAnswer } from '../store/output.js'

/** The command `reprise outbox`. */
export const outboxCommand: Command = {
  summary: 'how far relays and consumers are',
  about: `reprise outbox --url URL [--json]

Lists the readers of the store: how many messages are before them, how old the oldest one is, how many keys wait
behind a dead letter, and how many letters wait for a person. A reader that is gone for good keeps messages from
being purged: reprise outbox forget.

  reprise outbox --url sqlite:data/app.db
`,
  options: [storeOptions, { title: 'Options', options: [jsonOption] }],
  exitCodes: '0 shown, 1 it failed, 2 used wrongly.',
  run: runOutbox,
}

/** The command `reprise outbox new-epoch`. */
export const newEpochCommand: Command = {
  summary: 'after a restore: all keys begin a new epoch',
  about: `reprise outbox new-epoch --url URL --reason TEXT --yes

After a store was restored from a backup, numbers that were given out before are given out again, for other
messages. Run this before anything emits: every key begins a higher epoch with its next message, so that nobody
takes a new message for an old one. What was emitted after the backup and is lost, no command can tell.

  reprise outbox new-epoch --url sqlite:data/app.db --reason 'restored the backup of 03:00' --yes
`,
  options: [
    storeOptions,
    {
      title: 'Options',
      options: [
        { name: 'reason', kind: 'text', text: 'why; printed, so that it is in the log of whoever runs this' },
        { name: 'yes', kind: 'flag', text: 'really do it' },
        jsonOption,
      ],
    },
  ],
  exitCodes: '0 done, 1 it failed: run it again, 2 used wrongly.',
  run: runNewEpoch,
}

/** The command `reprise outbox forget`. */
export const forgetCommand: Command = {
  summary: 'a relay or consumer that does not come back',
  about: `reprise outbox forget READER --url URL --yes

Removes what the store knows of a reader: how far it is, what waits for it, and what it has processed. Messages are
then purged without it. Stop it first; one that comes back begins anew, with what is still there. Its dead letters
stay, those that were being redriven are open again; a redrive then waits for a reader of that name.

  reprise outbox forget receipts-v1 --url sqlite:data/app.db --yes
`,
  argument: 'reader',
  options: [
    storeOptions,
    {
      title: 'Options',
      options: [
        { name: 'reader', kind: 'text', value: 'NAME', text: 'which one; the word after forget' },
        { name: 'yes', kind: 'flag', text: 'really do it' },
        jsonOption,
      ],
    },
  ],
  exitCodes: '0 forgotten, 1 it failed: run it again, 2 used wrongly, 3 there is no such reader.',
  run: runForget,
}

async function runOutbox(given: GivenOptions, io: Io): Promise<void> {
  await withStore(given, io, async (store) => {
    const { domain: _, ...read } = await gauges(store, { deadline: '30s' })
    writeAnswer(given, io, { json: read, text: read.readers.map(readerText).join('') || 'no readers\n' })
  })
}

function readerText({ reader, kind, depth, behind, oldestMs, parked, letters }: ReaderGauges): string {
  const name = `${printable(reader)} (${kind})`
  if (depth === 0 && parked === 0 && letters === 0) return `${name}: nothing is before it\n`
  const oldest = oldestMs === undefined ? '' : `, the oldest ${inWords(oldestMs)} old`
  const waiting = parked === 0 ? '' : `; ${many(parked, 'key')} parked`
  const dead = letters === 0 ? '' : `; ${many(letters, 'dead letter')}`
  return `${name}: ${many(depth, 'message')} of ${many(behind, 'key')}${oldest}${waiting}${dead}\n`
}

const many = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

async function runNewEpoch(given: GivenOptions, io: Io): Promise<void> {
  const reason = given.text('reason')
  if (reason === undefined) throw new UsageError('--reason is missing: say what was restored')
  if (!given.has('yes')) throw new UsageError('--yes is missing: all keys begin a new epoch, which cannot be undone')
  await withStore(given, io, async (store) => {
    const keys = await store.messages.newEpochs(commandLimits())
    const text = `new epochs: ${many(keys, 'key')}, because: ${printable(reason)}\n`
    writeAnswer(given, io, { json: { keys, reason }, text })
  })
}

async function runForget(given: GivenOptions, io: Io): Promise<void> {
  const reader = given.text('reader')
  if (reader === undefined) throw new UsageError('which reader? reprise outbox forget READER')
  if (!given.has('yes')) throw new UsageError('--yes is missing: what the reader has processed is forgotten for good')
  await withStore(given, io, async (store) => {
    const forgotten = await store.messages.forget(reader, commandLimits())
    const text = forgotten ? `forgotten: ${printable(reader)}\n` : 'there is no such reader\n'
    writeAnswer(given, io, { json: { reader, forgotten }, text })
    if (!forgotten) io.exit(3)
  })
}
