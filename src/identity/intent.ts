// The intent in flight: its key and its deadline, carried through async code so that calls below can derive from it.

import { type Deadline, earlier, RepriseError, type ScopeValue, scopeKind } from '../kernel/index.js'
import { derive } from './derive.js'
import type { Key } from './key.js'

/** What travels with an intent. Either part may be absent; an empty intent carries nothing and costs nothing. */
export interface Intent {
  /** The key of the intent. Calls below send `deriveKey(step)`, never this key itself. */
  readonly key?: Key | undefined
  /** The moment at which nobody waits for the outcome any more. Inner deadlines can only be earlier. */
  readonly deadline?: Deadline | undefined
}

const keys = /* @__PURE__ */ scopeKind<Key>('reprise.key')
const deadlines = /* @__PURE__ */ scopeKind<Deadline>('reprise.deadline')

/**
 * Runs `work` on behalf of an intent. Code inside, also after an await, sees it through {@link currentIntent} until the
 * returned promise settles; timers and background work left behind see nothing of it afterwards. A generator, or an
 * object that only has a `then`, ends it at once: await inside. A deadline given here can only shorten the one already
 * in force.
 *
 * @example
 * ```ts
 * import { currentIntent, mintKey, withIntent } from 'reprise/identity'
 * import { deadlineAfter } from 'reprise/kernel'
 *
 * const intent = { key: mintKey(), deadline: deadlineAfter('2s') }
 * await withIntent(intent, async () => {
 *   console.log(currentIntent()?.key === intent.key)
 * })
 * ```
 * ```text
 * true
 * ```
 */
export function withIntent<Result>(intent: Intent, work: () => Result): Result {
  const { key, deadline } = intent
  const withKey = key === undefined ? work : () => keys.run(key, work)
  if (deadline === undefined) return withKey()
  const outer = deadlines.current()
  return deadlines.run(outer === undefined ? deadline : earlier(outer, deadline), withKey)
}

/** The key of an intent, to be opened as a scope together with others; for runners. */
export const keyScope: (key: Key) => ScopeValue = keys.with

/** The intent on whose behalf this code runs, or undefined when there is none. */
export function currentIntent(): Intent | undefined {
  const key = keys.current()
  const deadline = deadlines.current()
  if (key === undefined && deadline === undefined) return undefined
  return { key, deadline }
}

/** The deadline of the intent on whose behalf this code runs, or undefined when there is none. */
export const currentDeadline: () => Deadline | undefined = deadlines.current

/**
 * The key for a call made on behalf of the current intent: `derive(key, step)`.
 * Refuses with INTENT_MISSING where no intent with a key is in flight, since a fresh key would hide a repeat.
 *
 * @example
 * ```ts
 * import { deriveKey, mintKey, withIntent } from 'reprise/identity'
 *
 * const headers = withIntent({ key: mintKey() }, () => ({
 *   // The same at every repeat of the intent, and another one for every other step.
 *   'Idempotency-Key': deriveKey('capture'),
 * }))
 * ```
 */
export function deriveKey(step: string): Key {
  const key = keys.current()
  if (key === undefined) {
    throw new RepriseError('INTENT_MISSING', 'No intent with a key is in flight here; wrap the work in withIntent.')
  }
  return derive(key, step)
}
