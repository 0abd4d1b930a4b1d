// Equal requests of one caller under different keys within seconds: the sign of a client that mints a key for every
// attempt, which no layer can protect. Two equal payments on purpose look the same, so it is only reported.

import { fingerprint } from '../../../identity/index.js'
import { encodeTuple, sha256 } from '../../../kernel/index.js'
import { requestContent } from '../request/content.js'
import type { Arrival } from './handler.js'
import type { RouteSettings } from './settings.js'

const withinMs = 10_000
const mostContents = 1_000

/** What arrived at a route within the last seconds, as digests: at most a thousand contents. */
export class RecentContents<Native, Input> {
  readonly #rule: RouteSettings<Native, Input>['fieldRule']
  readonly #seen = new Map<string, { readonly key: string; readonly atMs: number }>()

  constructor(rule: RouteSettings<Native, Input>['fieldRule']) {
    this.#rule = rule
  }

  /**
   * Notes a request with a key. The result: how long ago the same caller sent the same content under another key, in
   * ms; undefined: it did not.
   */
  note({ principal, parts, key }: Arrival<Native, Input>, nowMs: number): number | undefined {
    const print = fingerprint(requestContent(parts.head, parts.bytes), this.#rule)
    const id = sha256(encodeTuple([...principal, print]))
    const digest = sha256(String(key))
    const before = this.#seen.get(id)
    this.#seen.delete(id)
    this.#seen.set(id, { key: digest, atMs: nowMs })
    if (this.#seen.size > mostContents) this.#seen.delete(this.#seen.keys().next().value as string)
    if (before === undefined || before.key === digest) return undefined
    const agoMs = nowMs - before.atMs
    return agoMs <= withinMs ? agoMs : undefined
  }
}
