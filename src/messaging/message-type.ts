// Types of messages, declared once with their schema: whoever emits one and whoever takes it know its data.

import type { Message, MessageDraft } from '../atomicity/index.js'
import { isStandardSchema, RepriseError, type StandardSchema } from '../kernel/index.js'

/** A schema that tells the compiler what it takes, beside what it makes of that: those of Zod, Valibot, ArkType do. */
export interface TypedSchema<Input = unknown, Output = Input> extends StandardSchema<Output> {
  readonly '~standard': StandardSchema<Output>['~standard'] & {
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

/** A type of message. `Input` is the data that is emitted, `Output` what the schema makes of it for a handler. */
export interface MessageType<Type extends string = string, Input = unknown, Output = unknown> {
  /** What happened, such as `order.placed`. */
  readonly type: Type
  readonly schema: StandardSchema<Output>
  /** A message for `tx.emit`. Whether its data is sound is checked there, by `schemas` of the store. */
  draft(parts: Omit<MessageDraft<Input>, 'type'>): MessageDraft<Input> & { readonly type: Type }
  /** Whether a message is of this type. Its data is as the schema gives it, where `schemas` of the consumer has it. */
  is(message: Message<unknown>): message is Message<Output> & { readonly type: Type }
}

/**
 * Declares a type of message with a schema of Standard Schema (Zod, Valibot, ArkType). Refuses with MESSAGE_INVALID
 * what is no type or no schema.
 *
 * @example
 * ```ts
 * import { consume, messageType, schemasOf } from 'reprise/messaging'
 * import { memory } from 'reprise/stores/memory'
 * import { z } from 'zod'
 *
 * const placed = messageType('order.placed', z.object({ total: z.number() }))
 * const schemas = schemasOf(placed)
 * const db = memory({ name: 'shop', messages: { schemas } })
 * const receipts = consume(db, {
 *   name: 'receipts',
 *   from: db,
 *   schemas,
 *   handle: (_tx, message) => {
 *     if (placed.is(message)) console.log(message.data.total.toFixed(2))
 *   },
 * })
 * await db.transact((tx) => tx.emit(placed.draft({ subject: 'order/1', data: { total: 5 } })))
 * await receipts.drain()
 * ```
 * ```text
 * 5.00
 * ```
 */
export function messageType<const Type extends string, Input, Output>(
  type: Type,
  schema: TypedSchema<Input, Output>,
): MessageType<Type, Input, Output> {
  if (typeof type !== 'string' || type === '' || type.length > 255)
    throw refused('type', 'A type of message is a text of 1 to 255 characters.')
  if (!isStandardSchema(schema))
    throw refused('schema', 'A schema of messages has the ~standard interface (standardschema.dev).')
  return Object.freeze({
    type,
    schema,
    draft: (parts: Omit<MessageDraft<Input>, 'type'>) => ({ ...parts, type }),
    is: (message: Message<unknown>): message is Message<Output> & { readonly type: Type } => message.type === type,
  })
}

/** The option `schemas` of stores and consumers, of types. Refuses two of one name with MESSAGE_INVALID. */
export function schemasOf(...types: readonly MessageType[]): Readonly<Record<string, StandardSchema>> {
  const schemas = new Map<string, StandardSchema>()
  for (const { type, schema } of types) {
    if (schemas.has(type)) throw refused('type', 'Two types of messages have the same name.')
    schemas.set(type, schema)
  }
  return Object.fromEntries(schemas)
}

function refused(field: string, message: string): RepriseError {
  return new RepriseError('MESSAGE_INVALID', message, { details: { field } })
}
