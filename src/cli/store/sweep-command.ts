// `reprise sweep`: finishes claims whose owner is gone, with the operations of the user's own module.

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Records } from '../../atomicity/index.js'
import {
  type LeasedOperation,
  leasedStoreOf,
  type RecordStore,
  type SweepCounts,
  type SweepReport,
  sweep,
} from '../../idempotency/index.js'
import { defined } from '../../kernel/index.js'
import { type OperationSweepEvent, operationSweep } from '../../telemetry/index.js'
import { complaintOf } from '../complaint.js'
import type { Io } from '../io.js'
import { type Command, type GivenOptions, UsageError } from '../option-table.js'
import { jsonOption, writeAnswer } from './output.js'

/** The command `reprise sweep`. */
export const sweepCommand: Command = {
  summary: 'drives claims whose owner is gone to an outcome',
  about: `reprise sweep --module FILE [options]

A claim whose lease is over may have had its effect. The sweep takes such records, and does what their
operation declares: asks what happened, runs it again under the same downstream key while the receiver still
knows it, or holds it for a person. It never runs anything again unasked. Several sweeps at once do no harm.
The module is loaded as it is: it opens its store, and may export close() to close it.

  reprise sweep --module dist/operations.js --every 30s
`,
  options: [
    {
      title: 'Options',
      options: [
        {
          name: 'module',
          kind: 'text',
          value: 'FILE',
          text: 'an ES module of yours that exports leased operations; their store comes with them',
        },
        {
          name: 'every',
          kind: 'text',
          value: 'DURATION',
          text: 'go on, with this rest in between (one sweep, then end)',
        },
        { name: 'batch', kind: 'number', text: 'records taken at once, 1 to 1000 (100)' },
        jsonOption,
      ],
    },
  ],
  exitCodes: `0 done, 1 it failed, or the look at some record did, or it was interrupted and there may be more, 2 used wrongly.`,
  run: runSweep,
}

async function runSweep(given: GivenOptions, io: Io): Promise<void> {
  const file = given.text('module')
  if (file === undefined) throw new UsageError('--module is missing: which operations?')
  const module = await loaded(io, file)
  const hear = (message: unknown): void => tellOfError(io, message as OperationSweepEvent)
  subscribe(operationSweep.name, hear)
  try {
    const reports = await sweepAll(module, given, io)
    const text = reports
      .map(
        ({ store, interrupted, ...counts }) => `${store}: ${lineOf(counts)}${interrupted ? interruption(store) : ''}`,
      )
      .join('')
    writeAnswer(given, io, { json: reports, text })
    if (reports.some(({ error, interrupted }) => error > 0 || interrupted)) io.exit(1)
  } finally {
    unsubscribe(operationSweep.name, hear)
    const close = module['close']
    if (typeof close === 'function') await close()
  }
}

type Report = SweepReport & { readonly store: string }

const interruption = (store: string): string => `${store}: interrupted: there may be more to look at\n`

function sweepAll(module: Readonly<Record<string, unknown>>, given: GivenOptions, io: Io): Promise<readonly Report[]> {
  const byStore = operationsByStore(module)
  if (byStore.size === 0) {
    throw new UsageError('the module exports no leased operation, or one of another copy of the package than this one')
  }
  const every = given.duration('every')
  const options = defined({ every, batch: given.number('batch'), signal: io.untilEnded?.() })
  const shows = !given.has('json') && (io.columns !== undefined || every !== undefined)
  const sweepOne = async ({ store, operations }: Swept): Promise<Report> => {
    const report = await sweep({
      store,
      operations,
      ...options,
      onProgress: (soFar) => {
        if (shows) io.complain(`${store.name}: ${lineOf(soFar)}`)
      },
    })
    return { store: store.name, ...report }
  }
  return Promise.all([...byStore.values()].map(sweepOne))
}

// The counts do not say why a record failed, and a pass that failed as a whole has no counts.
function tellOfError(io: Io, { domain, operation, what, error }: OperationSweepEvent): void {
  if (what !== 'error') return
  io.complain(`${domain}: ${operation === undefined ? '' : `${operation}: `}${complaintOf(error).line}\n`)
}

interface Swept {
  readonly store: RecordStore
  readonly operations: LeasedOperation<never, unknown>[]
}

function operationsByStore(module: Readonly<Record<string, unknown>>): ReadonlyMap<Records, Swept> {
  const found = new Map<Records, Swept>()
  const exported = Object.values(module).flatMap((value) => (Array.isArray(value) ? value : [value]) as unknown[])
  for (const operation of new Set(exported)) {
    const store = leasedStoreOf(operation)
    if (store === undefined) continue
    const swept = found.get(store.records) ?? { store, operations: [] }
    swept.operations.push(operation as LeasedOperation<never, unknown>)
    found.set(store.records, swept)
  }
  return found
}

async function loaded(io: Io, file: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return (await io.importModule(file)) as Readonly<Record<string, unknown>>
  } catch (error) {
    const why = error instanceof Error ? error.message : 'it threw'
    throw new UsageError(`the module cannot be loaded: ${why}`)
  }
}

function lineOf(report: SweepCounts): string {
  return `${Object.entries(report)
    .filter(([name, count]) => name === 'taken' || count > 0)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ')}\n`
}
