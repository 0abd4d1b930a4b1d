// What went wrong, as data: one closed list of codes, the cause kept, and nothing of the caller's secrets.
//
// A message names positions, lengths and limits. It never repeats a key, a body or any other input,
// because errors end up in logs.

/** Every code that Reprise can put on an error, with its meaning. Closed: a code is added here or nowhere. */
export const errorCodes = {
  ANSWER_NOT_HELD:
    'The answer of a handler cannot be held back until COMMIT: a stream of events, a change of the protocol, or too large.',
  ANSWER_NOT_RETURNED:
    'The handler of a route wrote to the response itself, where it has to return its answer, which leaves after COMMIT.',
  ARGUMENT_INVALID: 'An argument has the wrong type or lies outside its limits.',
  ATTEMPT_FAILED: 'The body of an attempt returned a verdict on its failure, and no value.',
  ATTEMPT_TIMEOUT: 'An attempt took longer than it may; whether it happened is not known.',
  BODY_CONSUMED: 'The body of a request was read by somebody else before its bytes could be seen.',
  BODY_CUT: 'The client went away before the body of its request had arrived.',
  BODY_MALFORMED: 'The body of a successful answer is not what it was to be read as.',
  BODY_TIME_LIMIT: 'The body of a transaction took longer than it may.',
  BODY_TOO_LARGE: 'A body has more bytes than the limit.',
  BREAKER_OPEN: 'The breaker is open: the target has been failing, and was not called.',
  BROKER_AWAY: 'The broker does not answer, or is not to be reached.',
  CAPABILITY_UNSUPPORTED: 'The domain cannot do what was asked; its manifest says why.',
  COMMITS_UNANSWERED: 'Connections whose last statement was not answered still keep their places on the server.',
  COMMIT_ROLLED_BACK: 'COMMIT was answered with ROLLBACK: nothing was stored.',
  COMMIT_TIMEOUT: 'COMMIT was not answered in time; what became of it has to be found out.',
  COMMIT_UNCLEAR: 'COMMIT was answered with something that is neither COMMIT nor ROLLBACK.',
  CONCURRENCY_LIMITED: 'As many attempts are out as the limit allows, and this one had no turn: it was not sent.',
  CONNECT_TIMEOUT: 'A connection to the store took too long to make, or to answer BEGIN.',
  DEADLINE_EXCEEDED: 'The deadline passed before an attempt could be useful.',
  DELIVERY_LOST: 'The subscription of a delivery is gone: nothing can be said about the message, which comes again.',
  DIGEST_INVALID: 'The text is not a digest with a known algorithm id.',
  DRILL_IN_PRODUCTION: 'A drill repeats calls on purpose, and a flag says that this is production.',
  DURATION_INVALID: 'The duration is neither a number of milliseconds from 0 to ten years nor text such as 2s.',
  EFFECT_IN_TRANSACTION: 'An effect was to leave, or left, the process while a transaction was open around it.',
  ETAG_MISSING: 'The answer has no strong ETag, so nothing can be written under it.',
  FAILURE_UNREGISTERED: 'A final failure has a code that the operation does not register.',
  FINGERPRINT_FIELDS_INVALID: 'The chosen or excluded fields are not valid JSON Pointers, or none of them is there.',
  FINGERPRINT_INVALID: 'The stored fingerprint cannot be read or names an unknown algorithm.',
  HTTP_STATUS: 'The server answered with a status that ends the operation.',
  INTENT_MISSING: 'A key was to be derived from the current intent, and there is none.',
  INTENT_UNREADABLE: 'What is stored as the key of an intent is no key: it was cut, or somebody else wrote it.',
  JSON_ENCODING: 'The bytes are not UTF-8.',
  JSON_LONE_SURROGATE: 'A string holds half of a surrogate pair, which has no UTF-8 form.',
  JSON_NUMBER_RANGE: 'The exponent of a number has too many digits to be normalised.',
  JSON_SYNTAX: 'The text is not JSON.',
  JSON_TOO_DEEP: 'The JSON is nested deeper than the limit.',
  JSON_TOO_LARGE: 'The JSON is larger than the limit.',
  JSON_VALUE_UNSUPPORTED: 'The value holds something that JSON cannot express without loss.',
  KEY_CHARACTER: 'The key holds a character other than visible ASCII.',
  KEY_EMPTY: 'The key is empty.',
  KEY_FIELD_ESCAPE: 'The quoted key holds a backslash that escapes neither a quote nor a backslash.',
  KEY_FIELD_PARAMETER: 'The parameters after the key are malformed, or not allowed here.',
  KEY_FIELD_REPEATED: 'The field names more than one key.',
  KEY_FIELD_TRAILING: 'Something other than parameters follows the key.',
  KEY_FIELD_UNQUOTED: 'The key is not a quoted string, and only that form is accepted here.',
  KEY_FIELD_UNTERMINATED: 'The quoted key has no closing quote.',
  KEY_MISSING: 'A key is required, and the field is absent.',
  KEY_PER_ATTEMPT: 'An attempt was about to send another key than the attempts before it.',
  KEY_TOO_LONG: 'The key is longer than the limit.',
  KEY_TOO_OLD: 'The key says that it was minted longer ago than the operation accepts.',
  KEY_TOO_SHORT: 'The key is shorter than the limit.',
  LEASE_LOST: 'The claim is no longer held: its lease was taken over, settled, or could not be renewed in time.',
  LETTER_REFUSED: 'There is no dead letter to decide on: it is not there, is decided already, or is closed.',
  LOCK_TIMEOUT: 'A statement waited longer for a lock than it may.',
  MARKER_FORGOTTEN: 'The marker of a key is not there, and its window is over: whether it was there nobody can say.',
  MARKER_INVALID: 'The stored marker of a key has no outcome, or is not one that Reprise wrote.',
  MESSAGE_EXISTS: 'A message with the same source and id is there already.',
  MESSAGE_INVALID: 'A message, or a part of it, cannot be as given.',
  MESSAGE_MISMATCH: 'A message with the same identity, and other content, was handled before.',
  MESSAGE_TOO_LARGE: 'The data of a message is larger than the limit, or a transaction emits too many messages.',
  MESSAGE_UNREADABLE: 'The stored data of a message was written by a codec that is not known, or cannot be decoded.',
  MIGRATION_BLOCKED: 'Others held a table of Reprise, or its migration, for too long.',
  MIGRATION_MISSING: 'The tables of Reprise are not in the database.',
  MIGRATION_NEWER: 'The schema was made by a newer version than this one.',
  OPERATION_DEFINED_TWICE: 'The domain has an operation of this name already.',
  OPERATION_FAILED: 'The operation failed for good; the failure says how, and every repeat gets the same one.',
  OPERATION_INVALID: 'The definition of an operation cannot be safe, or cannot be read.',
  OPERATION_IN_FLIGHT: 'The key is being worked on; try again later.',
  OPERATION_MISMATCH: 'The key was used with other content before.',
  OPERATION_MODE_CHANGED: 'The key was used by an operation of this name that kept its marker differently.',
  OPERATION_REENTERED: 'An operation was called with its own key from inside itself.',
  OPERATION_UNKNOWN: 'The operation may have had its effect, and nothing says whether; it is held until it is settled.',
  OUTCOME_TOO_LARGE: 'The operation is done, and its outcome was too large to keep.',
  OUTCOME_UNREADABLE:
    'The stored outcome was written by a codec that the operation does not name, or cannot be decoded.',
  PEPPER_MISMATCH: 'The records are stored under another pepper than the one given, or under none.',
  PEPPER_RENAME_REFUSED: 'The records cannot be renamed now: some of them depend on the names that they have.',
  POLICY_INVALID: 'The retry policy, or a part of it, cannot be as given.',
  POOLING_UNSUPPORTED: 'The connection pooler hands out connections by the statement, so no transaction can hold.',
  POOL_EXHAUSTED: 'No connection or turn became free in time.',
  QUEUE_FULL: 'Too many wait for their turn already.',
  RECORD_FORMAT_NEWER: 'The record was written by a newer version than this one; it is neither read nor replaced.',
  RECOVERY_MISSING:
    'A leased operation whose effect cannot be repeated says nothing about what to do when it may have happened.',
  RESOLVE_TOKEN_INVALID: 'The text is not a resolve token of this domain.',
  ROW_UNSETTLED: 'A row came and went every time it was looked at.',
  RUNTIME_UNSUPPORTED: 'This runtime lacks something the call needs.',
  SAVEPOINT_ORDER: 'A savepoint was not awaited, or was ended while another one, begun after it, was still open.',
  SCOPE_INVALID: 'The scope is empty, or one of its parts is.',
  SCOPE_MISSING: 'The definition of an operation does not say who may share a key.',
  SEQUENCE_FENCED:
    'The epoch of the producer is not the one that is open: a later one was opened, or it was forgotten.',
  SEQUENCE_GAP: 'The number is beyond the next one of its producer: one before it has not arrived.',
  SEQUENCE_INVALID: 'The Reprise-Sequence field is repeated or malformed.',
  SEQUENCE_MISMATCH: 'The number was used for other content before.',
  SEQUENCE_MISSING: 'The Reprise-Sequence field is absent.',
  SEQUENCE_UNSETTLED: 'The producer has a number whose call is under way, or may have taken effect.',
  SETTLE_REFUSED: 'There is nothing to settle: the key is absent, finished, or being worked on.',
  SHARED_COMMIT_LEFT: 'The body was still pending when others waited for the COMMIT that they share with it.',
  SHARED_COMMIT_UNDONE: 'The COMMIT that a transaction shared with others did not come about.',
  SIMULATION_UNSUPPORTED: 'The simulator has no model of a part of the policy, and does not leave it out unasked.',
  SQLITE_DRIVER_MISSING: 'No driver for SQLite is at hand.',
  STATEMENT_UNSUPPORTED: 'The client of a transaction was asked for what it does not do.',
  STEP_INVALID: 'The step name is empty, too long, or not well-formed text.',
  STORE_CLOSED: 'The store was closed.',
  STORE_FULL: 'The disk of the store is full: nothing can be written until somebody makes room.',
  STORE_UNREACHABLE: 'The store could not be reached for as long as the call may take.',
  TIMELINE_PASSED: 'The server is an old primary: another one was promoted in its place.',
  TRANSACTION_ABORTED: 'The body went on after an error that ended its transaction.',
  TRANSACTION_ENDED_ELSEWHERE: 'The transaction was no longer open when it was to be committed.',
  TRANSACTION_NESTED: 'A transaction was begun inside another one.',
  TRANSACTION_OVER: 'The transaction has ended, and its handle with it.',
  TRANSACTION_READ_ONLY: 'A transaction that was declared read-only tried to write.',
  TRANSACTION_STATEMENT: 'A statement inside a transaction would begin or end one, or change how it works.',
  TUPLE_INVALID: 'A part of a tuple is not well-formed text.',
  UNIQUE_VIOLATION: 'A row with the same unique key is there already.',
  UNKNOWN_OUTCOME: 'The operation may or may not have happened, and nothing makes a repeat safe.',
  UPDATE_CONFLICT: 'Somebody else changed the resource first, every time.',
  UPKEEP_UNKNOWN: 'A purge, a settlement or a decision may have happened: the store did not say in time.',
  VERSION_TAKEN:
    'A message of the subject with this version was emitted before, or one with a higher version was purged.',
  WINDOW_REENTERED: 'An id was passed to a dedupe window from inside the sink that has it.',
  WINDOW_SHORTER_THAN_DEADLINE: 'The memory of a key could end before a call that uses it does.',
  WINDOW_SHORTER_THAN_HORIZON: 'The memory of a key would end before its last repeat may arrive.',
  WINDOW_SHORTER_THAN_LEASE: 'The memory of a key would end before a claim on it does.',
  WINDOW_STORE_AWAY: 'The store of a dedupe window did not say whether a message came before; the sink was not called.',
} as const

/** One of the codes in {@link errorCodes}. */
export type ErrorCode = keyof typeof errorCodes

/** Facts that belong to an error: positions, lengths, limits, names from a closed set. Never input. */
export type ErrorDetails = Readonly<Record<string, number | boolean | string>>

/** What an error may carry beside its code and message. */
export interface RepriseErrorOptions {
  /** The error that led to this one. */
  readonly cause?: unknown
  /** Errors that happened afterwards, while cleaning up or trying again. Default: none. */
  readonly suppressed?: readonly unknown[]
  /** Facts for machines. Default: none. */
  readonly details?: ErrorDetails
}

// A registered symbol is the same in every copy of the package, so guards work across copies.
const brand = Symbol.for('reprise.error')

/** An error of Reprise's own: a refusal with a stable {@link ErrorCode}. */
export class RepriseError extends Error {
  override readonly name: string = 'RepriseError'
  /** The stable code; messages may be reworded, codes may not. */
  readonly code: ErrorCode
  /** Facts for machines: positions, lengths, limits. */
  readonly details: ErrorDetails
  /** Errors that happened after this one and must not hide it. */
  readonly suppressed: readonly unknown[]

  constructor(code: ErrorCode, message: string, options: RepriseErrorOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    Object.defineProperty(this, brand, { value: true })
    this.code = code
    this.details = Object.freeze({ ...options.details })
    this.suppressed = Object.freeze([...(options.suppressed ?? [])])
  }

  /** The parts that are safe to write down: no stack, no cause. */
  toJSON(): { name: string; code: ErrorCode; message: string; details: ErrorDetails } {
    return { name: this.name, code: this.code, message: this.message, details: this.details }
  }
}

/**
 * Whether a value is an error of Reprise, also one thrown by another copy of the package.
 * With a code, whether it carries that code.
 */
export function isRepriseError<Code extends ErrorCode = ErrorCode>(
  value: unknown,
  code?: Code,
): value is RepriseError & { readonly code: Code } {
  if (typeof value !== 'object' || value === null) return false
  try {
    if (Reflect.get(value, brand) !== true) return false
  } catch {
    return false // a proxy, or a getter, that throws: not ours
  }
  return code === undefined || (value as RepriseError).code === code
}
