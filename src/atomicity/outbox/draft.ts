// What a body hands to `tx.emit`, checked before anything of it is kept. What is wrong is named by its field, and never
// repeated.

import {
  demandKnown,
  durationMs,
  isRepriseError,
  issuePointer,
  isWellFormed,
  RepriseError,
  readableJsonOf,
  type SchemaResult,
  type StandardSchema,
} from '../../kernel/index.js'
import type { MessageDraft } from './message.js'

/** What keys begin with that a message has to itself. */
const ownKeyPrefix = 'reprise:'

/** The key of a message that is in order with no other. */
export function ownKeyOf(id: string): string {
  return ownKeyPrefix + id
}

/** The parts of a draft that need no other to be sound; its id, where it has none, is not minted yet. */
export interface CheckedDraft {
  readonly id: string | undefined
  readonly type: string
  readonly subject: string | undefined
  /** Undefined: it has one to itself. */
  readonly key: string | undefined
  readonly version: number | undefined
  readonly afterMs: number
  readonly schema: string | undefined
}

const fields = ['type', 'subject', 'key', 'data', 'id', 'version', 'after', 'schema']

/** Checks everything but the data. Refuses with MESSAGE_INVALID. */
export function checkDraft(draft: MessageDraft): CheckedDraft {
  demandKnown(draft, fields, 'message', 'MESSAGE_INVALID')
  const { id, type, subject, key, version, after, schema } = draft
  demandWord('type', type)
  if (subject !== undefined) demandWord('subject', subject)
  if (key !== undefined) demandWord('key', key)
  if (schema !== undefined) demandWord('schema', schema, 2_048)
  if (id !== undefined && !(typeof id === 'string' && /^[!-~]{1,255}$/.test(id))) {
    throw refused('id', 'is 1 to 255 visible ASCII characters')
  }
  const afterMs = after === undefined ? 0 : Math.ceil(delayMs(after))
  if (version !== undefined) demandVersion(draft, version, afterMs)
  const ordered = key ?? subject
  if (ordered?.startsWith(ownKeyPrefix)) {
    throw refused(key === undefined ? 'subject' : 'key', `does not begin with ${ownKeyPrefix}`)
  }
  return { id, type, subject, key: afterMs > 0 ? undefined : ordered, version, afterMs, schema }
}

/**
 * The data as JSON. Refuses with JSON_VALUE_UNSUPPORTED what JSON would not give back, and with MESSAGE_TOO_LARGE what
 * has more bytes than the limit.
 */
export function jsonOfData(data: unknown, largestBytes: number): string {
  // Nothing is no JSON, and stands for data that was erased.
  if (data === undefined) throw refused('data', 'is missing: give null for a message without any')
  let json: string
  try {
    json = readableJsonOf(data, { maxBytes: mostBytes })
  } catch (error) {
    if (isRepriseError(error, 'JSON_TOO_LARGE')) throw tooLarge(mostBytes, largestBytes, 'more than ')
    throw error
  }
  // A unit of text has one to three bytes.
  if (json.length > largestBytes / 3) {
    const bytes = Buffer.byteLength(json)
    if (bytes > largestBytes) throw tooLarge(bytes, largestBytes)
  }
  return json
}

/** Has the schema look at the data: undefined where it is sound, or a promise of that. Refuses with MESSAGE_INVALID. */
export function checkBySchema(schema: StandardSchema, data: unknown): Promise<void> | undefined {
  let result: SchemaResult | PromiseLike<SchemaResult>
  try {
    result = schema['~standard'].validate(data)
  } catch (error) {
    throw schemaFailed(error)
  }
  if (!('then' in result)) {
    demandSound(result)
    return undefined
  }
  return Promise.resolve(result).then(demandSound, (error: unknown) => {
    throw schemaFailed(error)
  })
}

function demandSound({ issues }: SchemaResult): void {
  if (issues === undefined || issues.length === 0) return
  const at = issues
    .slice(0, mostIssues)
    .map((issue) => issuePointer(issue) || 'its root')
    .join(', ')
  const message = `The data does not fit the schema of its type, at ${at}.`
  throw new RepriseError('MESSAGE_INVALID', message, {
    // What a schema says may hold the data: it is kept where it is not printed.
    cause: issues,
    details: { field: 'data', issues: issues.length, at },
  })
}

const mostIssues = 10
/** What is larger is not printed to learn how large it is. */
const mostBytes = 67_108_864

function schemaFailed(cause: unknown): RepriseError {
  return new RepriseError('MESSAGE_INVALID', 'The schema of a type failed.', { cause, details: { field: 'data' } })
}

// What a store and an event can hold: no control characters, and no half of a surrogate pair.
function demandWord(field: string, word: unknown, most = 255): void {
  const isWord = typeof word === 'string' && word !== '' && word.length <= most
  if (isWord && !/\p{Cc}/u.test(word) && isWellFormed(word)) return
  throw refused(field, `is text of 1 to ${most} characters, without control characters`)
}

function demandVersion({ subject, key }: MessageDraft, version: unknown, afterMs: number): void {
  if (!(Number.isSafeInteger(version) && (version as number) >= 1)) throw refused('version', 'is a whole number from 1')
  if (subject === undefined) throw refused('version', 'needs a subject')
  // The key remembers the versions of its subject after they are purged.
  if (key !== undefined && key !== subject) throw refused('version', 'needs its subject as its key')
  if (afterMs > 0) throw refused('version', 'cannot be delayed: its order among those of its subject would be lost')
}

function delayMs(after: NonNullable<MessageDraft['after']>): number {
  try {
    return durationMs(after)
  } catch (cause) {
    throw new RepriseError('MESSAGE_INVALID', 'The after of a message is a duration.', {
      cause,
      details: { field: 'after' },
    })
  }
}

function refused(field: string, rule: string): RepriseError {
  return new RepriseError('MESSAGE_INVALID', `The ${field} of a message ${rule}.`, { details: { field } })
}

function tooLarge(bytes: number, limitBytes: number, more = ''): RepriseError {
  const message = `The data of a message has ${more}${bytes} bytes as JSON; the limit is ${limitBytes}.`
  return new RepriseError('MESSAGE_TOO_LARGE', message, { details: { bytes, limitBytes } })
}
