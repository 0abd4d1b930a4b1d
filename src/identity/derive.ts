// Keys that are computed, not minted: one per step of an intent, one per computed event.
//
// Both carry a version (`d1-`, `c1-`): a repeat may arrive after an upgrade, and must then find the same key.

import { encodeTuple, isWellFormed, RepriseError, sha256 } from '../kernel/index.js'
import { type Key, parseKey } from './key.js'

const maxStepLength = 255
const maxInputs = 100_000

/**
 * The key of one step of an intent: always the same for the same key and step, different for any other pair.
 * Send it downstream, so that two calls made on behalf of one intent never share a key.
 * The result has 46 characters. A minted key cannot be found from it; a guessable one, such as an order number, can.
 *
 * @param step A fixed name chosen in the code, such as `'capture'`; 1 to 255 characters.
 */
export function derive(key: Key, step: string): Key {
  checkWord('STEP_INVALID', 'The step name', step)
  return computedKey('d1', [parseKey(key), step])
}

/** What a computed event is made of. */
export interface ContentKeyParts {
  /** The ids of the inputs that the event was computed from; at least one, none empty, at most 100,000. */
  readonly inputs: readonly string[]
  /** The id of the window of time that the computation covers, such as `'2026-11-15T10:00Z/PT5M'`. */
  readonly window: string
  /** Whether the inputs are a collection without order. Repeated ids still count. Default false: order matters. */
  readonly unordered?: boolean
}

/**
 * The key of a computed event (an aggregate, a settlement run, a daily report): the same inputs over the same window
 * give the same key, whoever computes it and however often.
 *
 * @example
 * ```ts
 * import { contentKey } from 'reprise/identity'
 *
 * // Whoever computes this aggregate again gets the same key.
 * const key = contentKey({ inputs: ['reading-1', 'reading-2'], window: '2026-11-15T10:00Z/PT5M' })
 * ```
 */
export function contentKey(parts: ContentKeyParts): Key {
  if (typeof parts !== 'object' || parts === null) {
    throw new RepriseError('ARGUMENT_INVALID', 'A content key is made of inputs and a window.')
  }
  checkWord('ARGUMENT_INVALID', 'The window id', parts.window)
  if (!Array.isArray(parts.inputs) || parts.inputs.length === 0 || parts.inputs.length > maxInputs) {
    throw new RepriseError('ARGUMENT_INVALID', `A content key needs 1 to ${maxInputs} input ids.`)
  }
  // Array.from visits holes too, which `some` would step over.
  if (Array.from(parts.inputs).some((id) => typeof id !== 'string' || id.length === 0)) {
    throw new RepriseError('ARGUMENT_INVALID', 'An input id is missing, empty or not a string.')
  }
  const unordered = parts.unordered ?? false
  if (typeof unordered !== 'boolean') throw new RepriseError('ARGUMENT_INVALID', '`unordered` is true or false.')
  const inputs = unordered ? [...parts.inputs].sort(byCodeUnits) : parts.inputs
  return computedKey('c1', [unordered ? 'unordered' : 'ordered', parts.window, ...inputs])
}

function computedKey(version: 'd1' | 'c1', parts: readonly string[]): Key {
  const digest = sha256(encodeTuple([version, ...parts]))
  return `${version}-${digest.slice('sha256:'.length)}` as Key
}

function checkWord(code: 'STEP_INVALID' | 'ARGUMENT_INVALID', what: string, word: string): void {
  if (typeof word !== 'string' || word.length === 0 || word.length > maxStepLength || !isWellFormed(word)) {
    throw new RepriseError(code, `${what} must be well-formed text of 1 to ${maxStepLength} characters.`)
  }
}

function byCodeUnits(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0
}
