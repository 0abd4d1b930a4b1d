// A guard says what makes a repeat of this call harmless. It comes with each call; without one, only what provably did
// not happen is repeated.

import { type Key, parseKey } from '../identity/index.js'
import { RepriseError } from '../kernel/index.js'

/** What makes a repeat harmless, cheapest first. */
export type Rung = 'read' | 'algebra' | 'conditional' | 'sequence' | 'key' | 'atomic'

declare const guardBrand: unique symbol

/** A reason to believe that a repeat is harmless. Made by the functions of this module only. */
export interface Guard<Named extends Key | undefined = Key | undefined> {
  /** @internal */
  readonly [guardBrand]: true
  /** The rung of the ladder it stands on. */
  readonly rung: Rung
  /** The key that the body sends with every attempt, if there is one. */
  readonly key: Named
}

// A registered symbol, so that a guard made by another copy of the package is known as one.
const brand = Symbol.for('reprise.guard')

class MadeGuard {
  readonly rung: Rung
  readonly key: Key | undefined
  readonly afterConflict: unknown
  readonly numbered: unknown

  constructor(rung: Rung, key: Key | undefined, afterConflict: unknown, numbered: unknown) {
    this.rung = rung
    this.key = key
    this.afterConflict = afterConflict
    this.numbered = numbered
  }

  get [brand](): true {
    return true
  }
}

/**
 * A guard.
 *
 * @param afterConflict How a call ends whose precondition failed: see `ConflictGuard` of run/call-state.ts. Default: as
 *   any other failure.
 * @param numbered How a call is made under a number: see `NumberedGuard` of sequenced/numbered.ts. Default: by none.
 */
export function guardOf<Named extends Key | undefined>(
  rung: Rung,
  key?: Named,
  afterConflict?: unknown,
  numbered?: unknown,
): Guard<Named> {
  return new MadeGuard(rung, key, afterConflict, numbered) as unknown as Guard<Named>
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

function want(holds: boolean, message: string): void {
  if (!holds) throw new RepriseError('ARGUMENT_INVALID', message)
}

/**
 * The call reads and changes nothing.
 *
 * @example
 * ```ts
 * import { readOnly, retryPolicy } from 'reprise/retry'
 *
 * const rates = await retryPolicy().run(readOnly(), ({ signal }) => fetch('https://api.example.com/rates', { signal }))
 * ```
 */
export function readOnly(): Guard {
  return guardOf('read')
}

/**
 * The effect is the same however often it happens: set to X, add to a set, delete.
 *
 * @param why What makes it so, for whoever reads the code: `'sets the status to paid'`.
 */
export function repeatable(why: string): Guard {
  want(isText(why), 'repeatable() wants the reason why a repeat is harmless.')
  return guardOf('algebra')
}

/**
 * The receiver honours keys: it carries out an intent once, whatever arrives with this key. The body gets the key.
 *
 * @example
 * ```ts
 * import { mintKey } from 'reprise/identity'
 * import { keyed, retryPolicy } from 'reprise/retry'
 *
 * const key = mintKey()
 * const headers = { 'Idempotency-Key': key }
 * await retryPolicy().run(keyed(key), () => fetch('https://api.example.com/payments', { method: 'POST', headers }))
 * ```
 */
export function keyed(key: Key): Guard<Key> {
  if (typeof key === 'function') {
    const message = 'keyed() wants a key, not a function that makes one: mint it once, before the first attempt.'
    throw new RepriseError('KEY_PER_ATTEMPT', message)
  }
  return guardOf('key', parseKey(key))
}

/**
 * Marker and effect commit together in a named domain, which recognises the repeat.
 *
 * @param domain The name of the store in which they commit.
 */
export function atomic(domain: string, key: Key): Guard<Key>
export function atomic(domain: string, key?: Key): Guard
export function atomic(domain: string, key?: Key): Guard {
  want(isText(domain), 'atomic() wants the name of a domain.')
  return guardOf('atomic', key === undefined ? undefined : parseKey(key))
}

/** Whether a value was made by one of the functions above, also by those of another copy of the package. */
export function isGuard(value: unknown): value is Guard {
  return (value as MadeGuard | null | undefined)?.[brand] === true
}

/** The refusal of what is no guard. */
export function notAGuard(): RepriseError {
  return new RepriseError('ARGUMENT_INVALID', 'run() wants a guard such as keyed(key); without one, use once().')
}
