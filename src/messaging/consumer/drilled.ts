// Deliveries where the store of a consumer has a drill: those that it draws come again, as from a broker that did not
// hear of the first. The store has to recognise them; the handler is not called.

import type { Message, TransactionControls } from '../../atomicity/index.js'
import type { Drill } from '../../drill/index.js'
import { timeOfRecords } from '../../idempotency/index.js'
import type { Clock } from '../../kernel/index.js'
import type { ConsumerDomain } from './options.js'

/** A message that was handled. */
export interface HandledMessage<Handle> {
  readonly consumer: string
  readonly message: Message
  /** Default: the domain's. */
  readonly clock?: Clock
  /** For how long it is remembered that it was handled, in ms. Default: for good. */
  readonly memoryMs?: number
  /** How long the repeat may take, in ms. */
  readonly deadlineMs: number
  /** What the store says of it when it comes again: `duplicate` where it is recognised, `new` where it is not. */
  readonly arrive: (tx: Handle) => Promise<string>
}

/** Has a delivery that a drill drew repeated later. What the store writes about the repeat is rolled back. */
export function deliverAgain<Handle extends TransactionControls>(
  drill: Drill,
  db: ConsumerDomain<Handle>,
  handled: HandledMessage<Handle>,
): void {
  const { consumer: name, message, memoryMs = Number.POSITIVE_INFINITY, deadlineMs } = handled
  const { clock = timeOfRecords(db.records).clock } = handled
  const owner = {}
  drill.repeat({
    call: { kind: 'consumer', domain: db.name, name, input: message },
    owner,
    clock,
    rememberedMs: memoryMs,
    first: 'duplicate',
    again: async () => {
      let told = ''
      const over = new Error('The repeat is rolled back.')
      const limits = { deadline: deadlineMs, bodyLimit: deadlineMs, connectionWait: deadlineMs }
      const body = async (tx: Handle): Promise<never> => {
        told = await handled.arrive(tx)
        throw over
      }
      await db.transact(body, limits).catch((error: unknown) => {
        if (error !== over) throw error
      })
      if (told === 'new') drill.reached(owner)
      return { told }
    },
  })
}
