// `reprise purge`: forgets what is past its window, and messages that every reader has done, in small batches.

import { type PurgeReport, purge } from '../../idempotency/index.js'
import { type Duration, defined, durationMs, isRepriseError, pick } from '../../kernel/index.js'
import { type MessagePurgeReport, purgeMessages } from '../../messaging/index.js'
import type { Io } from '../io.js'
import type { Command, GivenOptions } from '../option-table.js'
import { type CommandStore, storeOptions, withStore } from './open-store.js'
import { jsonOption, writeAnswer } from './output.js'

/** The command `reprise purge`. */
export const purgeCommand: Command = {
  summary: 'forgets what is past its window',
  about: `reprise purge --url URL [options]

Removes the records of finished operations whose window is over. What is claimed or unknown stays. Then messages
that every relay and consumer has done, what was processed longer ago than anybody remembers, keys without messages,
and dead letters that were closed; open ones stay. Run it every hour or so; several at once do no harm. Ctrl-C ends it
after the batch at hand.
Where the answer to a batch was lost, it says how many may have been forgotten besides those it counts.

  reprise purge --url postgres://app@db.example/app --audit-after 365d
`,
  options: [
    storeOptions,
    {
      title: 'Options',
      options: [
        { name: 'batch', kind: 'number', text: 'rows in one statement, 1 to 10000 (500)' },
        { name: 'pause', kind: 'text', value: 'DURATION', text: 'the rest between two batches (50ms)' },
        {
          name: 'unknown-after',
          kind: 'text',
          value: 'DURATION',
          text: 'also drop unknown outcomes this long after their first claim, each with an audit note (never)',
        },
        { name: 'audit-after', kind: 'text', value: 'DURATION', text: 'also forget audit notes this old (never)' },
        {
          name: 'markers-after',
          kind: 'text',
          value: 'DURATION',
          text: 'also forget keys of transactions this old that have no window; at least 12.5s (never)',
        },
        {
          name: 'sent-after',
          kind: 'text',
          value: 'DURATION',
          text: 'messages: this long after their emit, or never (1d)',
        },
        {
          name: 'processed-after',
          kind: 'text',
          value: 'DURATION',
          text: 'what consumers have processed: this long after it, or never; at least the memory of each of them (30d)',
        },
        {
          name: 'heads-after',
          kind: 'text',
          value: 'DURATION',
          text: 'keys without messages: this long after their last emit, or never (30d)',
        },
        {
          name: 'letters-after',
          kind: 'text',
          value: 'DURATION',
          text: 'dead letters: this long after they were closed, or never (90d)',
        },
        jsonOption,
      ],
    },
  ],
  exitCodes: '0 done, 1 it failed, or was interrupted and there may be more, 2 used wrongly.',
  run: runPurge,
}

async function runPurge(given: GivenOptions, io: Io): Promise<void> {
  const duration = (name: string): Duration | undefined => given.duration(name)
  const unknownAfter = duration('unknown-after')
  if (unknownAfter !== undefined) {
    durationMs(unknownAfter, { option: 'unknown-after' })
    io.complain(
      'warning: --unknown-after drops outcomes that nobody has found out about; a repeat of such a key is carried out anew\n',
    )
  }
  const signal = io.untilEnded?.()
  const batches = defined({ batch: given.number('batch'), pause: duration('pause'), signal })
  const records = defined({
    unknownAfter,
    auditAfter: duration('audit-after'),
    markersAfter: duration('markers-after'),
  })
  const messages = defined({
    sentAfter: duration('sent-after'),
    processedAfter: duration('processed-after'),
    headsAfter: duration('heads-after'),
    lettersAfter: duration('letters-after'),
  })
  const shows = !given.has('json') && io.columns !== undefined
  await withStore(given, io, async (store) => {
    const purged = await purge({
      store,
      ...batches,
      ...records,
      onProgress: ({ finished }) => {
        if (shows) io.complain(`\r${finished} finished forgotten`)
      },
    })
    const sent = await withMessages(store, {
      ...batches,
      ...messages,
      onProgress: ({ messages: count }) => {
        if (shows && count > 0) io.complain(`\r${count} messages forgotten`)
      },
    })
    if (shows) io.complain('\r\u001b[K')
    const interrupted = purged.interrupted || sent?.interrupted === true
    const unconfirmed = purged.unconfirmed + (sent?.unconfirmed ?? 0)
    writeAnswer(given, io, {
      json: { ...purged, unconfirmed, interrupted, messages: sent === undefined ? null : pick(sent, kinds) },
      text: textOf(purged, sent, unconfirmed, interrupted),
    })
    if (interrupted) io.exit(1)
  })
}

const kinds = ['messages', 'processed', 'heads', 'letters'] as const

// A store that an older version has migrated has no messages, and its records are purged all the same.
async function withMessages(
  store: CommandStore,
  options: Omit<Parameters<typeof purgeMessages>[0], 'store'>,
): Promise<MessagePurgeReport | undefined> {
  try {
    return await purgeMessages({ store, ...options })
  } catch (error) {
    if (isRepriseError(error, 'MIGRATION_MISSING')) return undefined
    throw error
  }
}

function textOf(
  { finished, unknown, markers, audit }: PurgeReport,
  sent: MessagePurgeReport | undefined,
  unconfirmed: number,
  interrupted: boolean,
): string {
  const { messages, processed, heads, letters } = sent ?? { messages: 0, processed: 0, heads: 0, letters: 0 }
  return [
    `forgotten: ${finished} finished, ${unknown} unknown, ${markers} keys of transactions, ${audit} notes\n`,
    sent === undefined
      ? ''
      : `of messages: ${messages} sent, ${processed} processed, ${heads} keys without messages, ${letters} closed dead letters\n`,
    unconfirmed > 0 ? `batches that may have been forgotten besides, their answers were lost: ${unconfirmed}\n` : '',
    interrupted ? 'interrupted: there may be more to forget\n' : '',
  ].join('')
}
