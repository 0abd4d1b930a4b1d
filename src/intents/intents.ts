// A keeper of keys: one key for each intent of a caller, kept before anything is sent, until the outcome is definite.

import type { Key } from '../identity/index.js'
import { RepriseError, systemClock, uuidv4 } from '../kernel/index.js'
import { intentId } from './content-id.js'
import { type IntentStorage, type WebStorage, webStorage } from './storage.js'

/** Options of {@link intents}. */
export interface IntentsOptions {
  /** Where keys are kept: `localStorage`, `sessionStorage`, `fileIntents`, `tableIntents`, or one of your own. */
  readonly storage: IntentStorage | WebStorage
  /**
   * How long the receiver remembers a key, in ms, counted from its minting. After that a repeat under it would be new
   * to the receiver too, and the intent gets a new key. Default 86,400,000: 24 hours.
   */
  readonly windowMs?: number
}

/** An intent that has no definite outcome yet. */
export interface KeptIntent {
  /** The key to send with every attempt. */
  readonly key: Key
  /** Whether the key was kept already: the intent may have been sent before. */
  readonly isKept: boolean
  /** Its outcome is definite: the key is let go, and the same content is a new intent from now on. */
  end(): Promise<void>
}

/** Keeps one key for each intent. */
export interface Intents {
  /**
   * The intent of that name and content, with the key that is kept for it, or a new one. Other content is another
   * intent.
   */
  open(name: string, content: unknown): Promise<KeptIntent>
  /**
   * Sends an intent, and ends it where the outcome is definite: by {@link isDefinite} of the answer that `send`
   * returns, or by what `definite` says, which is needed where `send` returns a value without a status, such as the
   * JSON of an answer: after a 504 that is a value too. Where `send` throws nobody knows, and the key stays.
   */
  run<Result extends IntentAnswer>(
    name: string,
    content: unknown,
    send: (key: Key) => PromiseLike<Result>,
  ): Promise<Result>
  run<Result>(
    name: string,
    content: unknown,
    send: (key: Key) => PromiseLike<Result>,
    definite: (result: Result) => boolean,
  ): Promise<Result>
}

/** An answer that says by its status how it ended: a `Response`, an answer of axios, got or undici. */
export type IntentAnswer = { readonly status: number } | { readonly statusCode: number }

// Answers after which the same intent may still be carried out under its key, or nobody knows whether it was: those of
// which a receiver remembers nothing, a key at work or unresolved, and a key that was used with other content.
const open = [401, 403, 408, 409, 412, 421, 422, 423, 425, 428, 429]

/**
 * Whether a result is a definite outcome: an answer with a `status`, or else a `statusCode`, from 200 to 499 but for
 * 401, 403, 408, 409, 412, 421, 422, 423, 425, 428 and 429. A value without a number there says nothing.
 */
export function isDefinite(result: unknown): boolean {
  const { status, statusCode } = Object(result) as { readonly status?: unknown; readonly statusCode?: unknown }
  const code = (typeof status === 'number' ? status : statusCode) as number
  return code >= 200 && code < 500 && !open.includes(code)
}

const mostLooks = 3

/**
 * Keeps one key for each intent: minted once, bound to its content, there after a reload or a crash, and shared by all
 * who use the same storage. It ends at a definite outcome, and not at a time-out. Refuses what is no storage, and a
 * window that is no number above 0, with ARGUMENT_INVALID.
 *
 * @example
 * ```ts
 * import { intents, type WebStorage } from 'reprise/intents'
 *
 * declare const localStorage: WebStorage // a page has it
 *
 * const keeper = intents({ storage: localStorage })
 * const cart = { items: ['lamp'], amountMinor: 1200 }
 * const answer = await keeper.run('checkout', cart, (key) =>
 *   fetch('/payments', { method: 'POST', headers: { 'Idempotency-Key': key }, body: JSON.stringify(cart) }),
 * )
 * ```
 */
export function intents(options: IntentsOptions): Intents {
  const { storage, windowMs = 86_400_000 } = Object(options) as IntentsOptions
  const keys =
    typeof (storage as WebStorage | null)?.getItem === 'function' ? webStorage(storage as WebStorage) : storage
  const { keep, forget } = Object(keys) as IntentStorage
  if (typeof keep !== 'function' || typeof forget !== 'function' || !(windowMs > 0)) {
    throw new RepriseError('ARGUMENT_INVALID', 'A keeper of keys needs a storage, and a windowMs above 0.')
  }
  const place = keys as IntentStorage
  const keeper: Intents = {
    async open(name, content) {
      const id = intentId(name, content)
      for (let looks = 0; looks < mostLooks; looks += 1) {
        const nowMs = systemClock.wallMs()
        const minted = `${uuidv4()} ${nowMs}`
        const kept = await place.keep(id, minted)
        const [key, mintedAtMs] = kept.split(' ')
        // What somebody else has put there is no number, and not in the window either.
        if (nowMs - Number(mintedAtMs) < windowMs)
          return { key: key as Key, isKept: kept !== minted, end: async () => place.forget(id, kept) }
        await place.forget(id, kept)
      }
      throw new RepriseError('ROW_UNSETTLED', 'The storage did not keep the key of an intent.')
    },
    async run<Result>(
      name: string,
      content: unknown,
      send: (key: Key) => PromiseLike<Result>,
      definite: (result: Result) => boolean = isDefinite,
    ) {
      const intent = await keeper.open(name, content)
      const result = await send(intent.key)
      if (definite(result)) await intent.end()
      return result
    },
  }
  return keeper
}
