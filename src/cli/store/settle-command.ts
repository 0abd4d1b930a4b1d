// `reprise settle`: a person decides an unknown outcome, and says why.

import { didNotHappen, fail, failedFinally, happened, type Settlement, settle } from '../../idempotency/index.js'
import type { Io } from '../io.js'
import { type Command, type GivenOptions, UsageError } from '../option-table.js'
import { commandLimits, storeOptions, withStore } from './open-store.js'
import { jsonOption, writeAnswer } from './output.js'
import { actorOf, idIn, recordNamed, recordOptions } from './which-record.js'

/** The command `reprise settle`. */
export const settleCommand: Command = {
  summary: 'decides an unknown outcome, with a reason',
  about: `reprise settle --url URL --operation NAME --scope PART --key KEY --as DECISION --reason TEXT

Ends an unknown outcome, or a claim whose owner is gone. Look first at what really happened (the gateway's own
list, the mail log): released lets the next call carry the intent out again, and if it did happen after all,
it happens twice.

  reprise settle --url sqlite:data/app.db --operation charge --scope tenant-7 --key 0198c0de-… \\
    --as succeeded --value '{"receipt":"r-81"}' --reason 'the gateway lists the charge as r-81'
`,
  options: [
    storeOptions,
    recordOptions,
    {
      title: 'Decision',
      options: [
        {
          name: 'as',
          kind: 'choice',
          choices: ['succeeded', 'failed', 'released'],
          text: 'it happened; it failed for good; it did not happen, and the key is free again',
        },
        { name: 'value', kind: 'text', value: 'JSON', text: 'succeeded: the result that repeats get (null)' },
        { name: 'code', kind: 'text', value: 'CODE', text: 'failed: one of the operation’s failure codes' },
        { name: 'data', kind: 'text', value: 'JSON', text: 'failed: what belongs to it' },
        { name: 'window', kind: 'text', value: 'DURATION', text: 'how long repeats get it from now on (24h)' },
        { name: 'reason', kind: 'text', text: 'why you know; kept as an audit note' },
        { name: 'actor', kind: 'text', value: 'NAME', text: 'who decides; kept with it (the environment’s USER)' },
        jsonOption,
      ],
    },
  ],
  exitCodes: `0 settled, 1 it failed, or may have been written (UPKEEP_UNKNOWN: settle it again, the same way), 2 used wrongly, 3 there is nothing to settle: the record is not there, finished, or
being worked on.`,
  run: runSettle,
}

async function runSettle(given: GivenOptions, io: Io): Promise<void> {
  const named = recordNamed(given)
  if (named === undefined) throw new UsageError('which record? --operation, --scope and --key, or --id')
  const reason = given.text('reason')
  if (reason === undefined) throw new UsageError('--reason is missing: say how you know')
  const actor = actorOf(given, io)
  const settlement = settlementOf(given)
  const window = given.duration('window') ?? '24h'
  await withStore(given, io, async (store) => {
    const id = idIn(store, named)
    await settle({ id, store }, settlement, { reason, actor, window, deadline: '30s' })
    const { record } = await store.records.read(id, commandLimits())
    const state = record?.state ?? 'absent'
    const text = state === 'absent' ? 'settled: the key is free again\n' : `settled: ${state}\n`
    writeAnswer(given, io, { json: { id, state }, text })
  })
}

function settlementOf(given: GivenOptions): Settlement {
  const as = given.text('as')
  const [value, code, data] = [given.text('value'), given.text('code'), given.text('data')]
  if (as !== 'succeeded' && value !== undefined) throw new UsageError('--value goes with --as succeeded')
  if (as !== 'failed' && (code !== undefined || data !== undefined)) {
    throw new UsageError('--code and --data go with --as failed')
  }
  switch (as) {
    case 'succeeded':
      return happened(parsed('value', value ?? 'null'))
    case 'failed':
      if (code === undefined) throw new UsageError('--as failed needs --code')
      return failedFinally(data === undefined ? fail(code) : fail(code, parsed('data', data)))
    case 'released':
      return didNotHappen()
    default:
      throw new UsageError('--as is missing: succeeded, failed or released')
  }
}

function parsed(option: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new UsageError(`--${option} is not JSON`)
  }
}
