// A number in the sequence of a producer, and the field in which it travels.

import { RepriseError } from '../kernel/index.js'
import type { FieldValue, HeaderCodec } from './headers.js'

/** A producer's numbered intent. */
export interface SequenceNumber {
  /** Who sends: 1 to 255 visible ASCII characters. */
  readonly producer: string
  /** Which life of the producer this is, from 1; each one is higher than all before. */
  readonly epoch: number
  /** The number of the intent within the epoch. The first is 1, and none is left out. */
  readonly number: number
}

const producerName = /^[\x21-\x7e]{1,255}$/

/** Whether a name can be that of a producer. */
export function isProducerName(name: unknown): name is string {
  return typeof name === 'string' && producerName.test(name)
}

// Fifteen digits are far beyond any real count, and still exact.
const most = 1e15

/** Whether a value can be an epoch, or a number within one. */
export function isSequenceCount(count: unknown): count is number {
  return Number.isSafeInteger(count) && (count as number) >= 1 && (count as number) < most
}

/** The three parts of a number, copied. Refuses what cannot be one with ARGUMENT_INVALID. */
export function sequenceNumberOf(given: SequenceNumber): SequenceNumber {
  const { producer, epoch, number } = Object(given) as SequenceNumber
  if (isProducerName(producer) && isSequenceCount(epoch) && isSequenceCount(number)) return { producer, epoch, number }
  const message =
    'A sequence number has a producer of 1 to 255 visible ASCII characters, an epoch from 1 and a number from 1.'
  throw new RepriseError('ARGUMENT_INVALID', message)
}

/** How the field of a sequence number is read and written. */
export interface SequenceHeaderCodec {
  /** The field's name as it is written. */
  readonly name: string
  /** The number. Refuses an absent field with SEQUENCE_MISSING, a repeated or malformed one with SEQUENCE_INVALID. */
  read(field: FieldValue): SequenceNumber
  /** The field's text. */
  write(at: SequenceNumber): string
}

// A structured-field String with two parameters (RFC 8941), in this order and with nothing else.
const form = /^ *"((?:[^"\\]|\\["\\])*)"; *epoch=(\d{1,15}); *number=(\d{1,15}) *$/

function valuesOf(field: FieldValue): readonly string[] {
  return typeof field === 'string' ? [field] : (field ?? [])
}

// The number in a field; undefined: it is absent, repeated or malformed.
function numberIn(field: FieldValue): SequenceNumber | undefined {
  const values = valuesOf(field)
  const found = values.length === 1 ? form.exec(String(values[0])) : null
  if (found === null) return undefined
  const [, quoted = '', epoch, number] = found
  const at = { producer: quoted.replace(/\\(.)/g, '$1'), epoch: Number(epoch), number: Number(number) }
  return isProducerName(at.producer) && isSequenceCount(at.epoch) && isSequenceCount(at.number) ? at : undefined
}

/**
 * `Reprise-Sequence: "shop-1";epoch=7;number=3`: which intent of which producer this is. Like the key it is refused
 * when malformed: a request that was meant to be numbered must not be carried out as one that is not.
 *
 * @example
 * ```ts
 * import { sequenceHeader } from 'reprise/identity'
 *
 * console.log(sequenceHeader.write({ producer: 'shop-1', epoch: 7, number: 3 }))
 * console.log(sequenceHeader.read('"shop-1";epoch=7;number=3').number)
 * ```
 * ```text
 * "shop-1";epoch=7;number=3
 * 3
 * ```
 */
export const sequenceHeader: SequenceHeaderCodec = {
  name: 'Reprise-Sequence',
  read: (field) => {
    if (valuesOf(field)[0] === undefined)
      throw new RepriseError('SEQUENCE_MISSING', 'The Reprise-Sequence field is absent.')
    const at = numberIn(field)
    if (at !== undefined) return at
    const message = 'The Reprise-Sequence field does not hold one number, such as "shop-1";epoch=7;number=3.'
    throw new RepriseError('SEQUENCE_INVALID', message)
  },
  write: (given) => {
    const { producer, epoch, number } = sequenceNumberOf(given)
    return `"${producer.replace(/["\\]/g, '\\$&')}";epoch=${epoch};number=${number}`
  },
}

/**
 * `Reprise-Accepted: "shop-1";epoch=7;number=3`: this number is used up, whatever the status of the answer says. For
 * handlers that accept a number and then answer 4xx; without it a sender gives the number to its next intent. What
 * cannot be read is ignored.
 *
 * @example
 * ```ts
 * import { acceptedHeader } from 'reprise/identity'
 *
 * const at = { producer: 'shop-1', epoch: 7, number: 3 }
 * console.log({ [acceptedHeader.name]: acceptedHeader.write(at) })
 * ```
 * ```text
 * { 'Reprise-Accepted': '"shop-1";epoch=7;number=3' }
 * ```
 */
export const acceptedHeader: HeaderCodec<SequenceNumber> = {
  name: 'Reprise-Accepted',
  read: numberIn,
  write: sequenceHeader.write,
}
