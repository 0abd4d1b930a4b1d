// Turns: of many processes that would all do the same work now and then, one does it. The turn is a record of the store
// like any other, so that its unique index and its clock decide, on every store. Nobody holds a turn: it is over by
// time, and a process that dies in its turn keeps the others waiting for no longer than that.

import { isFinished, type RecordStore, type Records, recordFormat } from '../../atomicity/index.js'
import { parseKey, scope } from '../../identity/index.js'
import { deadlineAfter, uuidv4 } from '../../kernel/index.js'
import { operationId } from '../call-identity.js'
import { stepByStep, type TimeAndChance } from '../leased/store-calls.js'

/** Whose turn it is. */
export interface Turn {
  readonly mine: boolean
  /** When the next turn begins, in ms from now. */
  readonly nextInMs: number
}

// The operation that records of turns name, so that people who list records know what they are.
const turnOperation = 'reprise.upkeep'

const limit = '5s'

/**
 * Takes the turn for some work, unless somebody has it. It lasts `lengthMs` by the store's clock, whatever becomes of
 * the work: whoever works for longer shares with the next.
 */
export async function takeTurn(
  { records }: Pick<RecordStore, 'records'>,
  time: TimeAndChance,
  work: string,
  lengthMs: number,
): Promise<Turn> {
  const id = operationId(turnOperation, scope(turnOperation), parseKey(work), records.pepper)
  const token = uuidv4(time.random)
  const mine: Turn = { mine: true, nextInMs: lengthMs }
  const first = { statement: (limits: Parameters<Records['read']>[1]) => records.read(id, limits) }
  const turn = await stepByStep<Turn>(time, deadlineAfter(limit, time.clock), first, ({ answer }) => {
    const { record, nowMs } = answer
    if (record === undefined) {
      const draft = { mode: 'leased', operation: turnOperation, token, leaseMs: lengthMs } as const
      return { statement: (limits) => records.insert(id, draft, limits) }
    }
    const isOurs = record.token === token
    // The answer to our own write was lost.
    if (isOurs && isFinished(record)) return { end: mine }
    const { expiresAtMs = record.dueAtMs ?? nowMs } = record
    if (record.format > recordFormat || (!isOurs && expiresAtMs > nowMs)) {
      return { end: { mine: false, nextInMs: Math.max(expiresAtMs - nowMs, 1) } }
    }
    const taken = { state: 'succeeded', token, claimed: true, dueInMs: null, remembered: lengthMs } as const
    return { statement: (limits) => records.swap(id, record, taken, limits), written: () => mine }
  })
  return turn ?? { mine: false, nextInMs: lengthMs }
}
