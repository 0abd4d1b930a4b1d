// A consumer whose effects lie outside of the store: each message is a leased operation, whose key is computed from the
// identity of the message. The operation's outcome is recorded first; that the message is done is a commit after it,
// and where a process dies in between the next one finds the outcome, and calls nobody.

import type { Message, RecordStore, TransactionControls } from '../../atomicity/index.js'
import {
  isFailure,
  type Lease,
  type LeasedOperation,
  type LeasedOptions,
  leased,
  type NameOfRecord,
  type Recovery,
} from '../../idempotency/index.js'
import { type Scope, scope } from '../../identity/index.js'
import { type Duration, defined, demandKnown, type ErrorCode, isRepriseError, pick } from '../../kernel/index.js'
import { type Classifier, isReturnedVerdict, permanent, soundVerdict, transient } from '../../retry/index.js'
import { type Consumer, runningConsumer } from './consumer.js'
import { Fenced, failed, Judged, reasonOf } from './failure.js'
import type { Ending } from './machine.js'
import {
  type ConsumeOptions,
  type ConsumerDomain,
  consumerSettings,
  type EffectEnd,
  invalid,
  optionNames,
} from './options.js'
import { messageKey } from './run/handling.js'

type Leased = LeasedOptions<Message, unknown, string>

/** What a consumer with leases needs of a store: its messages, its transactions and its records. */
export type LeasedConsumerDomain<Handle extends TransactionControls> = ConsumerDomain<Handle> & RecordStore

/** How a consumer with leases works. Beside these the options of `consume`, of which `lease` is that of both claims. */
export interface ConsumeLeasedOptions<Handle>
  extends Omit<ConsumeOptions<Handle>, 'handle' | 'discarded' | 'clock' | 'random'> {
  /**
   * Takes a message, outside of any transaction. What it sends goes through `lease.effect(step, call)`, which hands out
   * a key that is the same for every delivery and every run. A final failure is returned with `fail(…)`: the message is
   * then a dead letter.
   */
  // biome-ignore lint/suspicious/noExplicitAny: what the data is only the user knows, and `schemas` checks.
  readonly handle: (lease: Lease, message: Message<any>) => unknown
  /** What is done where the effect may have happened: `rerunKeyed(window)`, `resolve(fn)` or `hold()`. */
  readonly recover: NonNullable<Leased['recover']>
  /** The codes of final failures. Default: none. */
  readonly failures?: readonly string[]
  /** Makes a final failure of a thrown error, or returns undefined. Default: no thrown error is final. */
  readonly terminal?: NonNullable<Leased['terminal']>
  /** How long past its end the lease of an operation is left alone. Default a tenth of it, at least `'1s'`. */
  readonly margin?: Duration
  /** How much of the lease must be left for an external call to begin. Default half. */
  readonly leftForCall?: Duration
}

/** Takes messages, each with an effect outside of the store. */
export interface LeasedConsumer extends Consumer {
  /** The operation that each message is, for `sweep` and the answers of the domain. */
  readonly operation: LeasedOperation<Message, unknown>
  /** The record of a message, for `lookup` and `settle` of the domain. */
  which(message: Pick<Message, 'source' | 'id'>): NameOfRecord<LeasedOperation<Message, unknown>>
}

const ownNames = ['recover', 'failures', 'terminal', 'margin', 'leftForCall'] as const
const leftOut: readonly string[] = ['discarded', 'clock', 'random']
const shapeOfName = /^[A-Za-z][\w.:/-]{0,99}$/

/**
 * Takes messages whose effects lie outside of the store: an API that is called, a mail that is sent. Each message is a
 * leased operation with a key of its own, so that what may have happened is never repeated blindly: `recover` says what
 * is done about it. A message is done, and acknowledged, after its outcome is recorded. Order, verdicts and dead
 * letters are those of `consume`; a delivery goes through the inbox, whose claims keep a key in order over processes.
 *
 * Refuses options that cannot hold with ARGUMENT_INVALID, and what cannot be safe as `leased` does.
 *
 * @example
 * ```ts
 * import { rerunKeyed } from 'reprise/idempotency'
 * import { consumeLeased } from 'reprise/messaging'
 * import { memory } from 'reprise/stores/memory'
 *
 * const db = memory({ name: 'shop' })
 * const mail = consumeLeased(db, {
 *   name: 'mail',
 *   from: db,
 *   recover: rerunKeyed('24h'),
 *   handle: (lease, { data }) => lease.effect('send', async ({ key }) => console.log(data.to, key.length > 0)),
 * })
 * await db.transact((tx) => tx.emit({ type: 'order.placed', data: { to: 'ada' } }))
 * console.log((await mail.drain()).handled)
 * ```
 * ```text
 * ada true
 * 1
 * ```
 */
export function consumeLeased<Handle extends TransactionControls>(
  db: LeasedConsumerDomain<Handle>,
  options: ConsumeLeasedOptions<Handle>,
): LeasedConsumer {
  demandKnown(options, [...optionNames.filter((name) => !leftOut.includes(name)), ...ownNames], 'options')
  const { handle, ...given } = options
  if (typeof handle !== 'function') throw invalid('handle', 'A consumer needs a function that takes its messages.')
  const shared = Object.fromEntries(Object.entries(given).filter(([name]) => !isOwn(name)))
  // What is committed in the end has no effect of its own.
  const settings = consumerSettings(db, { ...(shared as unknown as ConsumeOptions<Handle>), handle: () => undefined })
  const { reader, classify } = settings
  if (!shapeOfName.test(reader.name)) {
    throw invalid('name', 'It names an operation too: 1 to 100 letters, digits and _ . : / -, a letter first.')
  }
  const thrown = new WeakSet<object>()
  const scoped: Scope = scope('reprise.consumer', reader.name)
  const operation = leased(`consumer/${reader.name}`, {
    store: db,
    scope: () => scoped,
    key: (message: Message) => messageKey(reader.name, message),
    // A message of the same identity and other content is found when it arrives.
    content: 'none',
    window: settings.memoryMs,
    lease: settings.leaseMs,
    deadline: settings.deadlineMs,
    duplicates: 'refuse',
    ...defined({ classify: options.classify }),
    ...pick(options, ownNames),
    run: async (lease: Lease, message: Message) => {
      try {
        return keepable(await handle(lease, message), lease)
      } catch (error) {
        if (typeof error === 'object' && error !== null) thrown.add(error)
        throw error
      }
    },
  } as never) as unknown as LeasedOperation<Message, unknown>
  const isHandlers = (error: unknown): boolean => typeof error !== 'object' || error === null || thrown.has(error)
  const recovery = operation.answers.recovery as Recovery
  const effect = async (message: Message, signal: AbortSignal): Promise<EffectEnd | undefined> => {
    // There is nothing to be done for a message that was discarded.
    if (message.discarded !== undefined) return undefined
    try {
      const outcome = await operation.outcome(message, { signal })
      if (outcome.outcome === 'succeeded') return undefined
      const { code, message: said } = outcome.failure as { readonly code: string; readonly message?: string }
      const reason = said === undefined ? `It failed for good: ${code}.` : `It failed for good: ${said}`
      return { ending: { is: 'dead', code, reason }, error: undefined }
    } catch (error) {
      return { ending: effectEnding(error, isHandlers(error), classify, recovery, signal), error }
    }
  }
  const consumer = runningConsumer(db, { ...settings, effect })
  return Object.assign(consumer, {
    operation,
    which: (message: Pick<Message, 'source' | 'id'>) => ({
      operation,
      scope: scoped,
      key: messageKey(reader.name, message),
    }),
  })
}

function isOwn(name: string): boolean {
  return (ownNames as readonly string[]).includes(name)
}

// What the operation keeps: that it is done, or how it failed. A returned verdict is a failure, as in `consume`.
function keepable(returned: unknown, lease: Lease): unknown {
  if (isFailure(returned)) return returned
  if (!isReturnedVerdict(returned)) return null
  const judged = new Judged(soundVerdict(returned.verdict))
  throw judged.verdict.happened === 'no' ? lease.notSent(judged) : judged
}

/** Others have the operation, or had it: what became of it is known later. */
const taken: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['LEASE_LOST', 'OPERATION_IN_FLIGHT', 'QUEUE_FULL'])
/** The record of the message is not one that this consumer can go on with. */
const unusable: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'FAILURE_UNREGISTERED',
  'MARKER_INVALID',
  'OPERATION_MISMATCH',
  'OPERATION_MODE_CHANGED',
  'OPERATION_REENTERED',
  'OUTCOME_TOO_LARGE',
  'OUTCOME_UNREADABLE',
  'RECORD_FORMAT_NEWER',
])

/**
 * What it means that the operation of a message failed.
 *
 * @param isHandlers Whether it is what the handler threw: then it is proven that nothing was sent.
 */
export function effectEnding(
  error: unknown,
  isHandlers: boolean,
  classify: Classifier,
  { kind }: Pick<Recovery, 'kind'>,
  signal: AbortSignal,
): Ending {
  if (error instanceof Fenced || signal.aborted) return { is: 'fenced' }
  if (isHandlers) return failed(error, classify)
  if (!isRepriseError(error)) return { is: 'away' }
  const { code } = error
  if (taken.has(code)) return { is: 'busy' }
  if (unusable.has(code)) return { is: 'refused', code, reason: reasonOf(error) }
  if (code !== 'OPERATION_UNKNOWN') return { is: 'away' }
  const { cause } = error
  // The receiver tells a repeat from a new request, so that what the handler threw says whether one would help.
  if (kind === 'rerun' && cause !== undefined) return failed(cause, classify)
  const verdict = kind === 'hold' ? permanent(code, 'maybe') : transient(code, 'maybe')
  return { is: 'failed', verdict, code, reason: reasonOf(cause ?? error), spared: false }
}
