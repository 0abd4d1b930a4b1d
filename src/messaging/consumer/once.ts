// A message that takes effect once, where somebody else owns the loop: a job queue, a function that a platform calls.

import type { Message, TransactionControls } from '../../atomicity/index.js'
import { drillOfRecords } from '../../idempotency/index.js'
import { contentKey, withIntent } from '../../identity/index.js'
import {
  type Duration,
  deadlineAfter,
  defined,
  demandKnown,
  demandSignal,
  durationMs,
  RepriseError,
} from '../../kernel/index.js'
import type { Arrival, Reader } from '../lanes.js'
import type { MessageStore } from '../store.js'
import { deliverAgain } from './drilled.js'
import { type ConsumerDomain, demandDomain, demandName, invalid } from './options.js'
import { messageFingerprint } from './run/deliveries.js'

/** Which message, and for whom. */
export interface OnceOptions {
  /** Who handles it: 1 to 255 characters. Each consumer handles a message once. */
  readonly consumer: string
  /** The id that the message has in every delivery: 1 to 255 characters. */
  readonly id: string
  /** Where the id comes from, such as the name of a queue: two sources may use the same ids. Default `'once'`. */
  readonly source?: string
  /**
   * What belongs to the id, as plain data: the same id with other content is refused with MESSAGE_MISMATCH. Default:
   * nothing is compared.
   */
  readonly content?: unknown
  /** How long it may take, with all repeats of the transaction. Default `'10s'`. */
  readonly deadline?: Duration
  /** Ends it, unless COMMIT is on its way. Default: none. */
  readonly signal?: AbortSignal
}

/** What became of it. */
export type OnceResult<Value> =
  | { readonly handled: true; readonly value: Value }
  | { readonly handled: false; readonly because: 'duplicate' }

const optionNames = ['consumer', 'id', 'source', 'content', 'deadline', 'signal']

const registered = new WeakMap<MessageStore<never>, Set<string>>()

/**
 * Lets a message take effect once. The effect and the fact that the message was handled are one commit: a repeat finds
 * that fact, and the handler is not called. What the handler throws rolls both back, and is thrown to whoever owns the
 * loop. Refuses with MESSAGE_MISMATCH an id that came with other content.
 *
 * @example
 * ```ts
 * import { once } from 'reprise/messaging'
 * import { memory } from 'reprise/stores/memory'
 *
 * const db = memory({ name: 'shop' })
 * const job = () => once(db, { consumer: 'mail', id: 'job-1' })(() => console.log('sent'))
 * await job()
 * console.log((await job()).handled)
 * ```
 * ```text
 * sent
 * false
 * ```
 */
export function once<Handle extends TransactionControls>(
  db: ConsumerDomain<Handle>,
  options: OnceOptions,
): <Value>(handler: (tx: Handle) => PromiseLike<Value> | Value) => Promise<OnceResult<Value>> {
  demandKnown(options, optionNames, 'options')
  demandDomain(db)
  const { consumer, id, source = 'once', content, deadline = '10s', signal } = options
  demandName('consumer', consumer)
  demandName('id', id)
  demandName('source', source)
  if (signal !== undefined) demandSignal(signal)
  const deadlineMs = durationMs(deadline, { minMs: 1, option: 'deadline' })
  const reader: Reader = { name: consumer, kind: 'consumer', reads: 'inbox' }
  const arrival = arrivalOf(reader, source, id, content)
  const key = contentKey({ inputs: [consumer, source, id], window: 'reprise.consumer' })
  const drill = drillOfRecords(db.records)
  return async (handler) => {
    if (typeof handler !== 'function') throw invalid('handler', 'once needs a function.')
    await registeredOnce(db, reader)
    const limits = { deadline: deadlineMs, bodyLimit: deadlineMs, connectionWait: deadlineMs, ...defined({ signal }) }
    const arrive = async (tx: Handle): Promise<string> => (await db.messages.arrive(tx, arrival, 0)).is
    type Result = OnceResult<Awaited<ReturnType<typeof handler>>>
    const result = await withIntent({ key }, () =>
      db.transact(async (tx): Promise<Result> => {
        const is = await arrive(tx)
        if (is === 'new') return { handled: true, value: await handler(tx) }
        if (is === 'mismatch') {
          throw new RepriseError('MESSAGE_MISMATCH', 'A message with this id, and other content, was handled before.')
        }
        return { handled: false, because: 'duplicate' }
      }, limits),
    )
    if (result.handled && drill?.draws())
      deliverAgain(drill, db, { consumer, message: arrival.message, deadlineMs, arrive })
    return result
  }
}

function arrivalOf(reader: Reader, source: string, id: string, content: unknown): Arrival {
  const message: Message<never> = {
    source,
    id,
    type: 'once',
    subject: undefined,
    key: id,
    place: undefined,
    version: undefined,
    atMs: 0,
    intent: undefined,
    traceparent: undefined,
    schema: undefined,
    data: undefined as never,
  }
  const fingerprint = messageFingerprint({ ...message, data: content })
  return { reader, order: 'none', message, stored: { codec: undefined, data: 'null' }, fingerprint }
}

async function registeredOnce<Handle extends TransactionControls>(
  { messages }: ConsumerDomain<Handle>,
  reader: Reader,
): Promise<void> {
  const known = registered.get(messages) ?? new Set()
  if (known.has(reader.name)) return
  await messages.register(reader, { deadline: deadlineAfter('5s') })
  registered.set(messages, known.add(reader.name))
}
