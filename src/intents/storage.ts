// Where keys are kept: two methods, of which the first decides who is first. And Web Storage as such a place.

import { systemClock } from '../kernel/index.js'

/** Keeps keys of intents, each as a text with the time of its minting. What it answers may be a promise. */
export interface IntentStorage {
  /** Keeps the text under the id, unless one is kept there already: answers the one that is kept now. */
  keep(id: string, text: string): string | PromiseLike<string>
  /** Forgets the text under the id. Another one that is kept there stays. */
  forget(id: string, text: string): void | PromiseLike<void>
}

/** What is used of `localStorage` and `sessionStorage`. */
export interface WebStorage {
  getItem(id: string): string | null
  setItem(id: string, key: string): void
  removeItem(id: string): void
}

interface Locks {
  request<Result>(name: string, work: () => Promise<Result>): Promise<Result>
}

// Absent on Node 20, and its locks on pages over plain HTTP.
declare const navigator: { readonly locks?: Locks }

// How long a write of one tab may take to be seen by the others. Tabs are processes, and each has a copy.
const seenAfterMs = 20

/**
 * Web Storage, which cannot compare and set. Where the browser has Web Locks (pages over HTTPS, and on loopback), one
 * tab at a time looks and writes, and holds the lock until the others can see it. Elsewhere each tab looks again after
 * a while, and takes what it then finds.
 */
export function webStorage(storage: WebStorage): IntentStorage {
  const locks = typeof navigator === 'undefined' ? undefined : navigator.locks
  const alone = <Result>(id: string, work: () => Promise<Result>): Promise<Result> =>
    locks === undefined ? work() : locks.request(id, work)
  return {
    keep: (id, key) =>
      alone(id, async () => {
        const kept = storage.getItem(id)
        if (kept !== null && locks !== undefined) return kept
        if (kept === null) storage.setItem(id, key)
        await new Promise<void>((resolve) => {
          systemClock.setTimer(seenAfterMs, resolve)
        })
        return storage.getItem(id) ?? kept ?? key
      }),
    forget: (id, key) =>
      alone(id, async () => {
        if (storage.getItem(id) === key) storage.removeItem(id)
      }),
  }
}
