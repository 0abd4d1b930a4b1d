// A dead letter as people see it: without data unless they ask for it, since that may be private.

import type { MessagePlace } from '../../atomicity/index.js'
import { isRepriseError } from '../../kernel/index.js'
import type { DeadLetter, LetterDecision } from '../lanes.js'
import type { MessageStore } from '../store.js'

/** A dead letter in a list. Times are in ms since 1970, by the store's clock. */
export interface ListedLetter {
  /** The relay or consumer that could not go on with it. */
  readonly reader: string
  readonly kind: DeadLetter['kind']
  readonly source: string
  readonly id: string
  readonly type: string
  readonly subject: string | undefined
  readonly key: string
  readonly place: MessagePlace
  /** When the message was emitted. */
  readonly atMs: number
  /**
   * `open`: a person has to decide. `redriving`, `discarding`: decided, and under way. `closed`: over. A letter that
   * fails again is open again.
   */
  readonly state: DeadLetter['state']
  /** Whether the later messages of its key wait for it. */
  readonly parks: boolean
  /** A stable word for the cause. */
  readonly code: string
  /** One sentence. */
  readonly reason: string
  readonly firstAtMs: number
  readonly lastAtMs: number
  /** What was decided last; undefined: nothing yet. */
  readonly decided: LetterNote | undefined
}

/** One dead letter, whole. */
export interface ShownLetter extends ListedLetter {
  readonly version: number | undefined
  readonly intent: string | undefined
  readonly traceparent: string | undefined
  readonly schema: string | undefined
  /** What its data was written by; undefined: it is JSON. */
  readonly codec: string | undefined
  /** How many characters its data has, as it is stored. */
  readonly dataLength: number
  /** The attempts, as its reader wrote them. */
  readonly history: unknown
  /** Its data, where that was asked for and can be read. */
  readonly data?: unknown
  /**
   * Why there is no data: it was not asked for, it was erased, or it cannot be read here, since its codec is not known
   * or fails. Undefined: there is.
   */
  readonly withheld: 'not-asked' | 'erased' | 'unreadable' | undefined
}

/** A decision, as it is kept with the letter. */
export interface LetterNote {
  readonly decision: LetterDecision['is']
  readonly actor: string
  readonly reason: string
}

/** The letter for a list. */
export function listedLetter(letter: DeadLetter): ListedLetter {
  const { reader, kind, state, parks, code, reason, firstAtMs, lastAtMs, note, message } = letter
  const { source, id, type, subject, key, place, atMs } = message
  return {
    reader,
    kind,
    source,
    id,
    type,
    subject,
    key,
    place,
    atMs,
    state,
    parks,
    code,
    reason,
    firstAtMs,
    lastAtMs,
    decided: noteIn(note),
  }
}

/** The letter, whole; its data only where that is asked for. */
export function shownLetter(
  letter: DeadLetter,
  withData: boolean,
  messages: Pick<MessageStore<never>, 'dataOf'>,
): ShownLetter {
  const { version, intent, traceparent, schema, codec, data } = letter.message
  const history = jsonOr(letter.history)
  const facts = {
    ...listedLetter(letter),
    version,
    intent,
    traceparent,
    schema,
    codec,
    dataLength: data.length,
    history,
  }
  if (!withData) return { ...facts, withheld: 'not-asked' }
  try {
    const value = messages.dataOf(letter.message)
    return value === undefined ? { ...facts, withheld: 'erased' } : { ...facts, data: value, withheld: undefined }
  } catch (error) {
    if (!isRepriseError(error, 'MESSAGE_UNREADABLE')) throw error
    return { ...facts, withheld: 'unreadable' }
  }
}

/** A note, as a store keeps it. */
export function noteIn(text: string | undefined): LetterNote | undefined {
  if (text === undefined) return undefined
  const { actor, reason, decision } = Object(jsonOr(text)) as Partial<LetterNote>
  return { decision: decision ?? 'redrive', actor: String(actor ?? ''), reason: String(reason ?? text) }
}

// Written by another version perhaps, or cut: then it is shown as it is.
function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
