// `reprise why`: the story of one intent, from the tables alone.

import type { StoredMessage } from '../../atomicity/index.js'
import { derive, type Key, type StoredKey } from '../../identity/index.js'
import { messageKey } from '../../messaging/index.js'
import { type Io, printable } from '../io.js'
import { type Command, type GivenOptions, UsageError } from '../option-table.js'
import { elsewhereText, mostListed, newestOfKey, underOtherScopes } from './find-records.js'
import { type CommandStore, commandLimits, storeOptions, withStore } from './open-store.js'
import { jsonOption, moment, recordJson, writeAnswer } from './output.js'
import { type Story, storyOf, type TracedMessage } from './story.js'
import { howToName, idIn, type NamedParts, partsNamed, recordOptions } from './which-record.js'

/** The command `reprise why`. */
export const whyCommand: Command = {
  summary: 'what became of one intent: its story, and what to do next',
  about: `reprise why KEY --url URL [options]

Tells the story of one intent in order of time: its record and the notes about it, the messages that it emitted and
those that consumers of this store emitted for them, who has delivered or processed each of them, and dead letters.
Then what the tables cannot say, and what to do next. Nothing is changed. The key is named as for inspect: with
the route and its caller, or with the operation and the scope. The key alone is looked for among the newest 1,000
records.

  reprise why 0198c0de-… --url sqlite:data/app.db
  reprise why 0198c0de-… --url sqlite:data/app.db --route pay --principal ada
  reprise why 0198c0de-… --url sqlite:data/app.db --operation pay --scope tenant-7

What is read: the record and its notes; of the outbox what was emitted since the key was claimed; inboxes and dead
letters, whole. Outcomes, inputs and data of messages are not shown.
`,
  argument: 'key',
  options: [storeOptions, recordOptions, { title: 'Options', options: [jsonOption] }],
  exitCodes: '0 told, 1 it failed, 2 used wrongly, 3 there is no such record, and no message of it.',
  run: runWhy,
}

async function runWhy(given: GivenOptions, io: Io): Promise<void> {
  const parts = partsNamed(given)
  if (parts.id === undefined && parts.key === undefined) throw new UsageError(howToName)
  await withStore(given, io, async (store) => {
    const id = parts.id === undefined ? await onlyRecord(store, parts) : idIn(store, parts.id)
    const { record, nowMs } = await store.records.read(id, commandLimits())
    const notes = (await store.records.inspection?.notes(id, commandLimits())) ?? []
    // What a record that is gone has emitted is looked for among all messages.
    const messages = await messagesOf(store, id, record?.firstClaimedAtMs ?? 0)
    const isAbsent = record === undefined && messages.length === 0
    const elsewhere = record === undefined ? await underOtherScopes(store, parts) : []
    const story = storyOf({ id, nowMs, record, notes, messages })
    writeAnswer(given, io, {
      json: {
        id,
        nowMs,
        record: record === undefined ? null : recordJson(id, record, false),
        notes,
        messages: messages.map(messageJson),
        ...story,
        ...(elsewhere.length === 0 ? {} : { elsewhere }),
      },
      text: `${elsewhere.map(elsewhereText).join('')}${textOf(story)}`,
    })
    if (isAbsent) io.exit(3)
  })
}

/** The one record among the newest that the key, and what else was given, leaves. */
async function onlyRecord(store: CommandStore, { key, operation, scope }: NamedParts): Promise<StoredKey> {
  if (store.records.pepper !== undefined) throw new UsageError(`under a pepper a key alone finds nothing: ${howToName}`)
  const found = await newestOfKey(store, key, { operation, scope })
  const [only] = found
  if (only === undefined) throw new UsageError(`none of the newest ${mostListed} records has this key: ${howToName}`)
  if (found.length === 1) return only.id
  const operations = [...new Set(found.map(({ record }) => printable(record.operation ?? '')))].join(', ')
  throw new UsageError(`${found.length} records have this key (${operations}): ${howToName}`)
}

const mostMessages = 200
const mostGenerations = 5

/** What the intent emitted, then what consumers of the same store emitted when they handled that, and so on. */
async function messagesOf(store: CommandStore, id: StoredKey, sinceMs: number): Promise<readonly TracedMessage[]> {
  const found = new Map<string, TracedMessage>()
  let keys: readonly Key[] = [id as string as Key]
  for (let generation = 1; generation <= mostGenerations && keys.length > 0; generation += 1) {
    const intents = keys.slice(0, 100).map((key) => derive(key, 'emit'))
    const caused = await store.messages.caused({ intents, sinceMs, limit: mostMessages }, commandLimits())
    const fresh: TracedMessage[] = []
    for (const message of caused) {
      const name = JSON.stringify([message.source, message.id])
      if (found.has(name) || found.size >= mostMessages) continue
      const traced = { message, ...(await store.messages.trace(message, commandLimits())) }
      found.set(name, traced)
      fresh.push(traced)
    }
    keys = fresh.flatMap(({ message, readers }) =>
      readers.filter(({ kind }) => kind === 'consumer').map(({ reader }) => messageKey(reader, message)),
    )
  }
  return [...found.values()]
}

function messageJson({ message, readers, letters }: TracedMessage): object {
  const bare = ({ data, ...rest }: StoredMessage): object => ({ ...rest, dataLength: data.length })
  return { ...bare(message), readers, letters: letters.map(({ message: _, ...letter }) => letter) }
}

function textOf({ events, notKnown, next }: Story): string {
  const lines = events.map(({ atMs, what }) => `${moment(atMs).padEnd(24)}  ${what}\n`)
  const part = (title: string, sentences: readonly string[]): string =>
    sentences.length === 0 ? '' : `${title}\n${sentences.map((sentence) => `  ${sentence}\n`).join('')}`
  const parts = [part('not known', notKnown), part('next', next)]
  // Where nothing happened, that is the first thing to know.
  return `${lines.join('')}${(events.length === 0 ? parts.reverse() : parts).join('')}`
}
