// The outbox of a domain: what its transactions emit is checked here, kept by the transaction, and written by its
// store at the end, in the same commit as everything else.

import { currentIntent, derive } from '../../identity/index.js'
import {
  demandKnown,
  demandWhole,
  eventLoopTurn,
  isStandardSchema,
  RepriseError,
  type StandardSchema,
  uuidv7,
} from '../../kernel/index.js'
import { afterCommitFailed } from '../../telemetry/index.js'
import { type EncodedText, type MessageCodec, MessageCodecs, type MessageIdentity } from './codec.js'
import { checkBySchema, checkDraft, jsonOfData, ownKeyOf } from './draft.js'
import type { Emission, MessageDraft, StoredMessage } from './message.js'

/** What a transaction can emit. */
export interface Emits {
  /**
   * Emits a message with this transaction: it is delivered if, and only if, the transaction commits. It is written at
   * the end, in the write that commits; inside a savepoint that is undone it is dropped. Answers with its id. Refuses
   * what cannot be a message with MESSAGE_INVALID, MESSAGE_TOO_LARGE or JSON_VALUE_UNSUPPORTED.
   *
   * @example
   * ```ts
   * import { sqlite } from 'reprise/stores/sqlite'
   *
   * const db = sqlite({ name: 'shop', file: 'shop.db' })
   * await db.transact(async (tx) => {
   *   await tx.query('insert into orders (id, total) values (?, ?)', [4711, 12])
   *   await tx.emit({ type: 'order.placed', subject: 'order/4711', data: { total: 12 } })
   * })
   * ```
   */
  emit(message: MessageDraft): Promise<string>
  /** The same for several, in this order; answers with their ids. */
  emit(messages: readonly MessageDraft[]): Promise<readonly string[]>
}

/** The same, answered at once where nothing has to be waited for. */
export interface EmitsSoon {
  emit(given: MessageDraft | readonly MessageDraft[]): Emitted | Promise<Emitted>
}

/** The id of one message, or those of several. */
export type Emitted = string | readonly string[]

/** Keeps what a body emits until the end of its transaction. */
export interface EmissionSink {
  /** Whether the transaction was declared read-only. */
  readonly readOnly: boolean
  /** Keeps them when it is the caller's turn, as that of a statement. Refuses where the handle is poisoned or over. */
  keep(emissions: readonly Emission[]): Promise<void> | void
}

/** How the messages of a domain are. */
export interface MessageOptions {
  /**
   * Who makes them, as a URI reference of 1 to 255 characters: with its id it names a message everywhere. Default: a
   * slash and the domain's name.
   */
  readonly source?: string
  /** How their data is stored. Default: as JSON. */
  readonly codec?: MessageCodec
  /** Codecs that only read what was written with them. Default: none. */
  readonly codecs?: readonly MessageCodec[]
  /** The most bytes that the data of one message has as JSON, from 1 to 16 MiB. Default 262,144 (256 KiB). */
  readonly largestBytes?: number
  /** What checks the data of a type when it is emitted. It is stored as it was given. Default: nothing. */
  readonly schemas?: Readonly<Record<string, StandardSchema>>
  /** Gives the W3C trace context of the code that emits, such as that of OpenTelemetry. Default: none. */
  readonly traceparent?: () => string | undefined
}

/** What a domain offers to those who read its messages. */
export interface OutboxReading {
  /** The source of what is emitted here. */
  readonly source: string
  /**
   * The data of a stored message, by the codec that wrote it. Undefined: it was erased. Refuses with MESSAGE_UNREADABLE
   * where the codec is not known here, or fails.
   */
  dataOf(message: StoredMessage): unknown
  /** The text that the codec in use makes of data, for messages that are stored on their arrival. */
  textOf(message: MessageIdentity, data: unknown): EncodedText
  /**
   * Calls `listener` after a transaction of this domain object has committed messages, soon and once for several.
   * Returns what ends that.
   */
  onEmit(listener: () => void): () => void
}

const optionNames = ['source', 'codec', 'codecs', 'largestBytes', 'schemas', 'traceparent']
const defaultLargest = 262_144
const mostLargest = 16_777_216
const uriReference = /^[\w\-.~:/?#[\]@!$&'()*+,;=%]{1,255}$/
const traceparentShape = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/

/** The outbox of a domain. */
export class Outbox {
  /** The source of what is emitted here. */
  readonly source: string
  /** What is offered to those who read its messages. */
  readonly reading: OutboxReading
  readonly #domain: string
  readonly #codecs: MessageCodecs
  readonly #largestBytes: number
  readonly #schemas: ReadonlyMap<string, StandardSchema>
  readonly #traceparent: (() => string | undefined) | undefined
  readonly #listeners = new Set<() => void>()
  #waking = false

  /** @param domain The name of the domain. */
  constructor(domain: string, options: MessageOptions = {}) {
    demandKnown(options, optionNames, 'messages')
    const { codec, codecs = [], largestBytes = defaultLargest, schemas = {}, traceparent } = options
    const { source = `/${encodeURIComponent(domain)}` } = options
    if (typeof source !== 'string' || !uriReference.test(source)) {
      throw invalid('source', 'The source of messages is a URI reference of 1 to 255 characters.')
    }
    demandWhole(largestBytes, 1, mostLargest, (why) => invalid('largestBytes', `The largest message: ${why}`))
    if (traceparent !== undefined && typeof traceparent !== 'function') {
      throw invalid('traceparent', 'traceparent is a function.')
    }
    this.source = source
    this.#domain = domain
    this.#codecs = new MessageCodecs(codec, codecs)
    this.#largestBytes = largestBytes
    this.#schemas = checkedSchemas(schemas)
    this.#traceparent = traceparent
    this.reading = {
      source,
      dataOf: (message) => this.#codecs.decode(message),
      textOf: (message, data) => this.#textOf(message, data),
      onEmit: (listener) => this.#onEmit(listener),
    }
  }

  /** Checks what a body emits, and has the transaction keep it. */
  emit(given: MessageDraft | readonly MessageDraft[], sink: EmissionSink): Emitted | Promise<Emitted> {
    if (sink.readOnly) throw new RepriseError('TRANSACTION_READ_ONLY', 'The transaction was declared read-only.')
    const isList = Array.isArray(given)
    const drafts: readonly MessageDraft[] = isList ? given : [given as MessageDraft]
    const waits: Promise<void>[] = []
    const emissions = drafts.map((draft) => this.#emission(draft, waits))
    const ids = emissions.map(({ id }) => id)
    const emitted = isList ? ids : (ids[0] as string)
    const keep = (): Promise<void> | void => sink.keep(emissions)
    const kept = waits.length === 0 ? keep() : Promise.all(waits).then(keep)
    return kept === undefined ? emitted : kept.then(() => emitted)
  }

  // Its data is printed now: what the caller does to it later is not emitted.
  #emission(draft: MessageDraft, waits: Promise<void>[]): Emission {
    const { id = uuidv7(), key = ownKeyOf(id), ...checked } = checkDraft(draft)
    const { type, subject } = checked
    const schema = this.#schemas.get(type)
    const wait = schema === undefined ? undefined : checkBySchema(schema, draft.data)
    // Whoever waits for them may be told of another one first.
    wait?.catch(() => undefined)
    if (wait !== undefined) waits.push(wait)
    const intentKey = currentIntent()?.key
    return {
      ...checked,
      id,
      key,
      intent: intentKey === undefined ? undefined : derive(intentKey, 'emit'),
      traceparent: this.#trace(),
      ...this.#textOf({ source: this.source, id, type, subject, key }, draft.data),
    }
  }

  // A trace is for people who look for something: one that is malformed is left out, and keeps nobody from emitting.
  #trace(): string | undefined {
    const traceparent = this.#traceparent?.()
    return typeof traceparent === 'string' && traceparentShape.test(traceparent) ? traceparent : undefined
  }

  #textOf(message: MessageIdentity, data: unknown): EncodedText {
    return this.#codecs.encode(jsonOfData(data, this.#largestBytes), message)
  }

  #onEmit(listener: () => void): () => void {
    // Each time another function, so that one that listens twice ends one of both.
    const listening = (): void => listener()
    this.#listeners.add(listening)
    return () => {
      this.#listeners.delete(listening)
    }
  }

  /** A transaction with messages has committed. Tells those who listen, once for all that do so in the same turn. */
  readonly wake = (): void => {
    if (this.#waking || this.#listeners.size === 0) return
    this.#waking = true
    void eventLoopTurn().then(() => {
      this.#waking = false
      for (const listener of this.#listeners) {
        try {
          listener()
        } catch (error) {
          // It is committed, and nobody waits here.
          if (afterCommitFailed.hasSubscribers) afterCommitFailed.publish({ domain: this.#domain, error })
        }
      }
    })
  }
}

function checkedSchemas(schemas: NonNullable<MessageOptions['schemas']>): ReadonlyMap<string, StandardSchema> {
  if (Object(schemas) !== schemas) throw invalid('schemas', 'schemas has a schema for each type of message.')
  const checked = new Map(Object.entries(schemas))
  for (const schema of checked.values()) {
    if (isStandardSchema(schema)) continue
    throw invalid('schemas', 'A schema of messages has the ~standard interface (standardschema.dev).')
  }
  return checked
}

function invalid(option: string, message: string): RepriseError {
  return new RepriseError('ARGUMENT_INVALID', message, { details: { option: `messages.${option}` } })
}
