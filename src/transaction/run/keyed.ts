// A transaction with a key: what it claims, what a record that is there means to it, and what it stores.

import {
  type BoundContent,
  type Expected,
  isForgotten,
  isSameContent,
  type RecordDraft,
  type RecordOutcome,
  recordFormat,
  type Stored,
  type StoredRecord,
} from '../../atomicity/index.js'
import { type Content, fingerprint, type Pepper, type StoredKey } from '../../identity/index.js'
import { canonicalJsonOf, defined, RepriseError, readableJsonOf, type ScopeValue, uuidv4 } from '../../kernel/index.js'

/** What a record that is there means: its outcome is handed out, or its memory has ended and its place can be taken. */
export type ReplayOrTakeOver<Result> = { readonly replay: Result } | { readonly takeOver: Expected }

/** The key of a transaction, and what is done with it. */
export interface KeyedCall<Result> {
  /** The name under which the record is stored. */
  readonly id: StoredKey
  /** The claim; its token is the same for all attempts of a call. */
  readonly draft: RecordDraft
  /** How long its outcome is remembered, in ms; `Infinity`: for ever. */
  readonly rememberedMs: number
  /** What a committed record means to this call. Throws what refuses it. */
  meet(stored: Stored): ReplayOrTakeOver<Result>
  /**
   * The longest that the next attempt waits for somebody else who has the key, in ms, counted from now. Never longer
   * than the lock wait. Default: the lock wait.
   */
  claimWaitMs?(): number
  /**
   * Somebody else had the key, or the whole store, for as long as the claim may wait. What the call is to end with, in
   * an object; undefined: it is tried again like any transaction that did not happen. Default: it is tried again.
   */
  blocked?(error: unknown): { readonly refusal: unknown } | undefined
  /** What is in force around the body beside its transaction. Default: nothing. */
  scopes?(): readonly ScopeValue[]
  /**
   * What the body's result becomes in the store, and the value that the first caller gets. Default: the result is both.
   */
  outcomeOf?(value: Result): { readonly outcome: RecordOutcome; readonly value: Result }
}

/** What a plain key is bound to, and for how long. */
export interface PlainKeyOptions {
  /** Undefined: nothing is compared. */
  readonly content?: Content | undefined
  /** How long the outcome is remembered, in ms. Default: for ever. */
  readonly rememberedMs?: number
  /** Under which the fingerprint of the content is stored. Default: none. */
  readonly pepper?: Pepper | undefined
}

/** A plain key: what is stored is handed out as long as it is remembered, to whoever brings the same content. */
export function plainKey<Result>(
  id: StoredKey,
  { content, rememberedMs = Number.POSITIVE_INFINITY, pepper }: PlainKeyOptions,
): KeyedCall<Result> {
  const bound = boundContent(content, pepper)
  const token = uuidv4()
  return {
    id,
    draft: { mode: 'atomic', token, ...defined({ fingerprint: bound.fingerprint }) },
    rememberedMs,
    meet({ record, nowMs }) {
      refuseNewer(record)
      if (isForgotten(record, nowMs)) return { takeOver: record }
      if (!isSameContent(bound, record)) {
        throw new RepriseError('OPERATION_MISMATCH', 'The key was used with other content before.')
      }
      return { replay: plainValue(record) }
    },
    outcomeOf(value) {
      const text = printValue(value)
      return { outcome: { state: 'succeeded', value: text, rememberedMs }, value: parseValue(text) }
    },
  }
}

/** A key that is looked up, and under which nothing is carried out. */
export type LookedUpKey = Pick<KeyedCall<unknown>, 'id' | 'draft' | 'meet'>

/**
 * A key of which only the name is known: whatever is stored is handed out.
 *
 * @param token Names the claim that is looked for; default one that nobody has.
 */
export function lookedUpKey(id: StoredKey, token: string = uuidv4()): LookedUpKey {
  return {
    id,
    draft: { mode: 'atomic', token },
    meet({ record }) {
      refuseNewer(record)
      return { replay: plainValue(record) }
    },
  }
}

// A value is kept as text, so that what happens to it later does not matter.
function boundContent(content: Content | undefined, pepper: Pepper | undefined): BoundContent {
  if (content === undefined) return { content, fingerprint: undefined }
  const made = fingerprint(content)
  const kept = 'value' in content ? { json: canonicalJsonOf(content.value) } : content
  return { content: kept, fingerprint: pepper === undefined ? made : pepper.hide(made), pepper }
}

function refuseNewer({ format }: StoredRecord): void {
  if (format <= recordFormat) return
  const message = 'The record was written by a newer version than this one; it is neither read nor replaced.'
  throw new RepriseError('RECORD_FORMAT_NEWER', message, { details: { format } })
}

function plainValue<Result>({ value, codec }: StoredRecord): Result {
  // What an operation stored by a codec can only be read by it.
  if (codec !== undefined) return undefined as Result
  if (value !== undefined) return parseValue(value)
  // The outcome is written before COMMIT, so a committed marker without one was not written here.
  const message =
    'The key is committed as claimed, without an outcome: a body ended its transaction itself, or something else wrote the record. Nothing runs under it until its effect is looked for and the key settled.'
  throw new RepriseError('MARKER_INVALID', message)
}

// A body that returns nothing stores nothing; no JSON text is empty.
const nothing = ''

/**
 * The value as text. Refuses with JSON_VALUE_UNSUPPORTED what JSON would not give back, before anything is committed.
 */
export function printValue(value: unknown): string {
  return value === undefined ? nothing : readableJsonOf(value)
}

/** The value of a stored text. The first caller gets it too, so that first and repeated answers are alike. */
export function parseValue<Result>(text: string): Result {
  return (text === nothing ? undefined : JSON.parse(text)) as Result
}
