// Work that goes on behind its caller: begun without waiting for its end, and asked later how far it is.

import type { Scope, StoredKey } from '../../identity/index.js'
import {
  type Deadline,
  type Duration,
  deadlineAfter,
  demandKnown,
  detached,
  durationMs,
  RepriseError,
} from '../../kernel/index.js'
import { refuseInside } from '../../transaction/index.js'
import type { LeasedOperation } from '../definition.js'
import { repeatedLater } from '../drill/calls.js'
import { refusedBy } from '../errors.js'
import { refuseReentry } from '../in-process.js'
import { decide } from '../machine.js'
import { decodeOutcome, type Outcome } from '../outcome.js'
import { knownOperation } from '../upkeep/known-operations.js'
import { LeasedCall } from './call.js'
import type { Plan } from './plan.js'
import { persistently } from './store-calls.js'

/** How work is begun. */
export interface BeginOptions {
  /** How long it may take until there is a claim. Default: the operation's deadline. */
  readonly deadline?: Duration
  /**
   * How long the work may take, from the call on: then its signal is aborted, nothing more may be sent, and its lease
   * is not renewed any more. Nothing else ends it, neither `deadline` nor the deadline of the intent in flight.
   * Default `'1h'`.
   */
  readonly workLimit?: Duration
}

/** What was begun, or had ended before. */
export type Begun<Result, Code extends string = string> =
  | {
      readonly state: 'working'
      /**
       * How it ends, or why that is not known. Nobody has to listen: what it rejects with is no unhandled rejection.
       */
      readonly end: Promise<Outcome<Result, Code>>
    }
  | { readonly state: 'ended'; readonly outcome: Outcome<Result, Code> }

const usualLimit = '1h'

/**
 * Begins an operation, and returns as soon as its claim is durable; the work goes on under its lease. A key whose work
 * has ended gives its outcome. Refuses like a call of the operation: a key that is being worked on with
 * OPERATION_IN_FLIGHT, other content with OPERATION_MISMATCH.
 *
 * @example
 * ```ts
 * import { begin, leased, rerunKeyed } from 'reprise/idempotency'
 * import { type Key, mintKey, scope } from 'reprise/identity'
 * import { memory } from 'reprise/stores/memory'
 *
 * const render = leased('render', {
 *   store: memory({ name: 'shop' }), scope: () => scope('shop'), key: ({ key }: { key: Key }) => key,
 *   window: '24h', lease: '30s', recover: rerunKeyed('24h'),
 *   run: (lease) => lease.effect('render', async () => 'done'),
 * })
 * const begun = await begin(render, { key: mintKey() })
 * console.log(begun.state, begun.state === 'working' && (await begun.end).outcome)
 * ```
 * ```text
 * working succeeded
 * ```
 */
export async function begin<Input, Result, Code extends string>(
  operation: LeasedOperation<Input, Result, Code>,
  input: Input,
  options: BeginOptions = {},
): Promise<Begun<Result, Code>> {
  demandKnown(options, ['deadline', 'workLimit'], 'options of begin')
  const { workLimit = usualLimit, ...call } = options
  const limitMs = durationMs(workLimit, { minMs: 1, option: 'workLimit' })
  let hear = (): void => undefined
  const claimed = new Promise<void>((resolve) => {
    hear = resolve
  })
  const behind = { limitMs, claimed: () => hear() }
  const plan = planOf(operation)
  const work = new LeasedCall(plan, input, call, behind)
  // Asked here, since the work itself is outside of all that is in force around this call.
  refuseReentry(plan.domain.queue, work.id)
  refuseInside()
  const again = async (given: Input): Promise<Outcome<unknown>> => new LeasedCall(plan, given).outcome()
  const end = detached(() => repeatedLater(plan, input, () => work.outcome(), again)) as Promise<Outcome<Result, Code>>
  // Also where it rejects before there is a claim: then the race does.
  end.catch(() => undefined)
  const ended = end.then((outcome) => ({ state: 'ended', outcome }) as const)
  return Promise.race([claimed.then(() => ({ state: 'working', end }) as const), ended])
}

/** Which work is meant. */
export interface WhichWork {
  /** The name of its record. */
  readonly id: StoredKey
  /** Who may know of it: the record has to be of one of these scopes. */
  readonly scopes: readonly Scope[]
}

/**
 * How far work is. `absent`: there is no record of it, of these scopes or at all; it may have been released, or
 * forgotten. `unknown`: whoever worked on it is gone, or could not tell how it ended; it is recovered as declared.
 */
export type WorkState<Result, Code extends string = string> =
  | { readonly state: 'absent' }
  | { readonly state: 'unknown' }
  | {
      readonly state: 'working'
      /** When the present claim was made, in ms since 1970 by the store's clock. */
      readonly sinceMs: number
    }
  | { readonly state: 'ended'; readonly outcome: Outcome<Result, Code> }

/**
 * How far the work under a record is: what a repeat would meet, without being one. Nothing is changed, and nothing
 * recovered. Refuses with OUTCOME_TOO_LARGE, OUTCOME_UNREADABLE and RECORD_FORMAT_NEWER like a repeat.
 */
export async function workState<Input, Result, Code extends string>(
  operation: LeasedOperation<Input, Result, Code>,
  { id, scopes }: WhichWork,
  { deadline = '5s' }: { readonly deadline?: Duration } = {},
): Promise<WorkState<Result, Code>> {
  const plan = planOf(operation)
  const { domain, settings, leaseMs, marginMs, recovery } = plan
  const { clock, records } = domain
  const until: Deadline = deadlineAfter(deadline, clock)
  const { answer } = await persistently(domain, until, (limits) => records.read(id, limits))
  const { record, nowMs } = answer
  const { pepper } = records
  const stored: readonly string[] = pepper === undefined ? scopes : scopes.map((scope) => pepper.hide(scope))
  if (record?.scope === undefined || record.operation !== settings.name || !stored.includes(record.scope))
    return { state: 'absent' }
  // The rules are those of a claim: by a name that nobody has, with the content that is there.
  const claim = { kind: 'claim', mode: 'leased', token: '', fingerprint: undefined, input: undefined } as const
  const decision = decide(record, { ...claim, sameContent: true, leaseMs, marginMs, recovery }, nowMs)
  switch (decision.act) {
    case 'replay': {
      const state = record.state === 'failed' ? 'failed' : 'succeeded'
      const ending = { state, codec: record.codec, value: record.value, own: false } as const
      const context = { id, operation: settings.name }
      const outcome = await decodeOutcome(settings.storage, ending, context, { deadline: until, clock })
      return { state: 'ended', outcome: outcome as Outcome<Result, Code> }
    }
    case 'execute':
      return { state: decision.how === 'anew' ? 'absent' : 'unknown' }
    case 'refuse':
      if (decision.because === 'in-flight') return { state: 'working', sinceMs: record.claimedAtMs }
      if (decision.because === 'unknown') return { state: 'unknown' }
      throw refusedBy(decision, record)
    default:
      return { state: 'unknown' }
  }
}

function planOf(operation: unknown): Plan {
  const plan = knownOperation(operation)?.plan
  if (plan === undefined) throw new RepriseError('ARGUMENT_INVALID', 'Only a leased operation works behind its caller.')
  return plan
}
