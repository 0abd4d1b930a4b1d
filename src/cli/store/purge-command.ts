// `reprise purge`: forgets what is past its window, in small batches.

import { purge } from '../../idempotency/index.js'
import { type Duration, defined, durationMs } from '../../kernel/index.js'
import type { Io } from '../io.js'
import type { Command, GivenOptions } from '../option-table.js'
import { storeOptions, withStore } from './open-store.js'
import { jsonOption, writeAnswer } from './output.js'

/** The command `reprise purge`. */
export const purgeCommand: Command = {
  summary: 'forgets what is past its window',
  about: `reprise purge --url URL [options]

Removes the records of finished operations whose window is over. What is claimed or unknown stays. Run it
every hour or so; several at once do no harm. Ctrl-C ends it after the batch at hand.
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
        jsonOption,
      ],
    },
  ],
  exitCodes: '0 done, 1 it failed, or was interrupted and there may be more, 2 used wrongly.',
  run: runPurge,
}

async function runPurge(given: GivenOptions, io: Io): Promise<void> {
  const duration = (name: string): Duration | undefined => given.text(name) as Duration | undefined
  const unknownAfter = duration('unknown-after')
  if (unknownAfter !== undefined) {
    durationMs(unknownAfter, { option: 'unknown-after' })
    io.complain(
      'warning: --unknown-after drops outcomes that nobody has found out about; a repeat of such a key is carried out anew\n',
    )
  }
  const options = defined({
    batch: given.number('batch'),
    pause: duration('pause'),
    unknownAfter,
    auditAfter: duration('audit-after'),
    markersAfter: duration('markers-after'),
    signal: io.untilEnded?.(),
  })
  const shows = !given.has('json') && io.columns !== undefined
  await withStore(given, io, async (store) => {
    const purged = await purge({
      store,
      ...options,
      onProgress: (soFar) => {
        if (shows) io.complain(`\r${soFar.finished} finished forgotten`)
      },
    })
    if (shows) io.complain('\r\u001b[K')
    const { finished, unknown, audit, markers, unconfirmed, interrupted } = purged
    const text = [
      `forgotten: ${finished} finished, ${unknown} unknown, ${markers} keys of transactions, ${audit} notes\n`,
      unconfirmed > 0 ? `batches that may have been forgotten besides, their answers were lost: ${unconfirmed}\n` : '',
      interrupted ? 'interrupted: there may be more to forget\n' : '',
    ].join('')
    writeAnswer(given, io, { json: purged, text })
    if (interrupted) io.exit(1)
  })
}
