// `reprise purge`: forgets what is past its window, in small batches.

import { purge } from '../../idempotency/index.js'
import { type Duration, durationMs } from '../../kernel/index.js'
import type { Io } from '../io.js'
import { type GivenOptions, type OptionGroup, optionHelp } from '../option-table.js'
import { storeOptions, withStore } from './open-store.js'
import { jsonOption, writeJson } from './output.js'

/** The options of the command. */
export const purgeOptions: readonly OptionGroup[] = [
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
        text: 'also forget keys of transactions this old, which have no window of their own (never)',
      },
      jsonOption,
    ],
  },
]

/** The help of the command. */
export function purgeHelp(): string {
  return `reprise purge --url URL [options]

Removes the records of finished operations whose window is over. What is claimed or unknown stays. Run it every hour or so; several at once do no
harm. Ctrl-C ends it after the batch at hand.

  reprise purge --url postgres://app@db.example/app --audit-after 365d

${optionHelp(purgeOptions)}
Exit codes: 0 done, 1 it failed, 2 used wrongly.
`
}

/** Runs the command. */
export async function purgeCommand(given: GivenOptions, io: Io): Promise<void> {
  const duration = (name: string): Duration | undefined => given.text(name) as Duration | undefined
  const [unknownAfter, auditAfter, markersAfter, pause] = [
    'unknown-after',
    'audit-after',
    'markers-after',
    'pause',
  ].map(duration)
  const batch = given.number('batch')
  if (unknownAfter !== undefined) {
    durationMs(unknownAfter)
    io.complain(
      'warning: --unknown-after drops outcomes that nobody has found out about; a repeat of such a key is carried out anew\n',
    )
  }
  const signal = io.untilEnded?.()
  await withStore(given, io, async (store) => {
    const purged = await purge({
      store: { name: store.engine, records: store.records },
      ...(batch === undefined ? {} : { batch }),
      ...(pause === undefined ? {} : { pause }),
      ...(unknownAfter === undefined ? {} : { unknownAfter }),
      ...(auditAfter === undefined ? {} : { auditAfter }),
      ...(markersAfter === undefined ? {} : { markersAfter }),
      ...(signal === undefined ? {} : { signal }),
      onProgress: (soFar) => {
        if (!given.has('json') && io.columns !== undefined) io.complain(`\r${soFar.finished} finished forgotten`)
      },
    })
    if (given.has('json')) writeJson(io, purged)
    else {
      const { finished, unknown, audit, markers } = purged
      if (io.columns !== undefined) io.complain('\r\u001b[K')
      io.write(`forgotten: ${finished} finished, ${unknown} unknown, ${markers} keys of transactions, ${audit} notes\n`)
    }
  })
}
