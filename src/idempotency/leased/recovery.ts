// What is done where an effect may have happened and nobody knows: declared in the definition, never guessed.

import type { Key } from '../../identity/index.js'
import { type Duration, durationMs, RepriseError } from '../../kernel/index.js'
import type { Recovery } from '../machine.js'
import { type Failure, isFailure } from '../outcome.js'

/** What the other side says about an effect that may have happened. */
export type Found<Result = unknown, Code extends string = string> =
  | { readonly found: 'happened'; readonly value: Result }
  | { readonly found: 'failed'; readonly failure: Failure<Code> }
  | { readonly found: 'did-not-happen' }
  | { readonly found: 'still-unknown' }

/** What a resolving function gets. */
export interface ResolveCall<Input> {
  readonly operation: string
  /** The key that was sent with a step: what to ask the other side for. */
  key(step: string): Key
  /** When the key was claimed first, in ms since 1970 by the store's clock: before it nothing was sent. */
  readonly claimedAtMs: number
  /**
   * The input: the caller's own, or the one that was kept with the claim. Undefined in a sweep where it was not kept.
   */
  readonly input: Input | undefined
  /** Aborted when the time for asking is over, or the claim is lost. */
  readonly signal: AbortSignal
}

/** Asks what happened. What it throws means: still unknown. It must not have effects of its own. */
export type ResolveFunction<Input, Result, Code extends string = string> = (
  call: ResolveCall<Input>,
) => PromiseLike<Found<Result, Code>> | Found<Result, Code>

/** A declared recovery, made by {@link rerunKeyed}, {@link resolve} or {@link hold}. */
export interface Recover<in Input = never, out Result = unknown, out Code extends string = string> {
  /** What the machine knows of it. */
  readonly rule: Recovery
  /** Asks what happened; only where the rule is `resolve`. */
  readonly ask?: ResolveFunction<Input, Result, Code>
}

/**
 * The receiver honours the derived key: the operation is run again, and the receiver tells a repeat from a new request.
 *
 * @param window How long the receiver remembers a key, counted from when it was first sent. Later than that nobody runs
 * it again: a person settles it.
 *
 * @example
 * ```ts
 * import { rerunKeyed } from 'reprise/idempotency'
 *
 * // The bank remembers an Idempotency-Key for a day.
 * export const recover = rerunKeyed('24h')
 * ```
 */
export function rerunKeyed(window: Duration): Recover<unknown, never, never> {
  return Object.freeze({ rule: Object.freeze({ kind: 'rerun', windowMs: durationMs(window, { minMs: 1 }) }) })
}

/**
 * Somebody can be asked what happened. The answer is given by {@link happened}, {@link failedFinally}, {@link
 * didNotHappen} or {@link stillUnknown}. Mind what is still on its way: say `didNotHappen()` only where the effect
 * cannot arrive any more.
 *
 * @example
 * ```ts
 * import { didNotHappen, happened, resolve } from 'reprise/idempotency'
 *
 * const charges = new Map<string, string>()
 * export const recover = resolve(({ key }) => {
 *   const charge = charges.get(key('capture'))
 *   return charge === undefined ? didNotHappen() : happened(charge)
 * })
 * ```
 */
export function resolve<Input, Result, Code extends string = never>(
  ask: ResolveFunction<Input, Result, Code>,
): Recover<Input, Result, Code> {
  if (typeof ask !== 'function') throw new RepriseError('ARGUMENT_INVALID', 'resolve needs a function.')
  return Object.freeze({ rule: Object.freeze({ kind: 'resolve' }), ask })
}

/**
 * Nobody can be asked, and a repeat would do harm: a person settles it.
 *
 * @example
 * ```ts
 * import { hold } from 'reprise/idempotency'
 *
 * // A printed letter is not asked back, and not sent twice.
 * export const recover = hold()
 * ```
 */
export function hold(): Recover<unknown, never, never> {
  return Object.freeze({ rule: Object.freeze({ kind: 'hold' }) })
}

/** Whether a value is one of the three recoveries, with what it needs. */
export function isRecover(value: unknown): value is Recover {
  const { rule, ask } = Object(value) as { readonly rule?: Partial<Recovery>; readonly ask?: unknown }
  if (rule?.kind === 'resolve') return typeof ask === 'function'
  if (rule?.kind === 'rerun') return typeof rule.windowMs === 'number' && rule.windowMs >= 1
  return rule?.kind === 'hold'
}

/** It happened, and this was the result. */
export function happened<Result>(value: Result): { readonly found: 'happened'; readonly value: Result } {
  return Object.freeze({ found: 'happened', value })
}

/** It failed for good, in this way. */
export function failedFinally<Code extends string>(
  failure: Failure<Code>,
): { readonly found: 'failed'; readonly failure: Failure<Code> } {
  if (!isFailure(failure)) throw new RepriseError('ARGUMENT_INVALID', 'A final failure is made by fail(…).')
  return Object.freeze({ found: 'failed', failure })
}

/** It did not happen, and cannot happen any more: nothing of it is still on its way. */
export function didNotHappen(): { readonly found: 'did-not-happen' } {
  return Object.freeze({ found: 'did-not-happen' })
}

/** Nobody knows yet. */
export function stillUnknown(): { readonly found: 'still-unknown' } {
  return Object.freeze({ found: 'still-unknown' })
}

const answers: readonly unknown[] = ['happened', 'failed', 'did-not-happen', 'still-unknown']

/** Whether a value is one of the four answers. */
export function isFound(value: unknown): value is Found {
  const { found, failure } = Object(value) as { readonly found?: unknown; readonly failure?: unknown }
  return answers.includes(found) && (found !== 'failed' || isFailure(failure))
}
