// What a number means where it arrives: a pure function of what is remembered of its producer.

import type { SequenceNumber } from '../identity/index.js'

/** What a store remembers of a producer: the epoch that is open, and the last number that was accepted in it. */
export interface ProducerRow {
  /** The epoch that is open. */
  readonly epoch: number
  /** The last number that was accepted; 0: none yet. */
  readonly number: number
  /** Of the content of that number; undefined: none was given. */
  readonly fingerprint: string | undefined
  /** The result of that number, as text; undefined: it is not kept. */
  readonly value: string | undefined
}

/** What a number comes to. */
export type SequenceRuling =
  /** It is the next one, and is to be carried out. */
  | { readonly is: 'new' }
  /** It was accepted before. `isLast`: it is the last one, whose result may be kept. */
  | { readonly is: 'duplicate'; readonly isLast: boolean }
  /** It is the last one, with other content. */
  | { readonly is: 'mismatch' }
  /** One before it has not arrived. */
  | { readonly is: 'gap'; readonly next: number }
  /** Another epoch is open; undefined: none. */
  | { readonly is: 'fenced'; readonly open: number | undefined }

/**
 * Rules upon a number. A producer that is not remembered has no epoch open: its numbers are refused, never taken for
 * the first ones of a new producer, since what was forgotten may have been carried out.
 *
 * @param row What is remembered; undefined: nothing.
 * @param isSame Whether the content of a fingerprint is that of this number.
 */
export function ruleOnNumber(
  row: ProducerRow | undefined,
  at: Pick<SequenceNumber, 'epoch' | 'number'>,
  isSame: (fingerprint: string) => boolean = () => true,
): SequenceRuling {
  if (row === undefined || row.epoch !== at.epoch) return { is: 'fenced', open: row?.epoch }
  if (at.number === row.number + 1) return { is: 'new' }
  if (at.number > row.number) return { is: 'gap', next: row.number + 1 }
  const isLast = at.number === row.number
  const differs = isLast && row.fingerprint !== undefined && !isSame(row.fingerprint)
  return differs ? { is: 'mismatch' } : { is: 'duplicate', isLast }
}
