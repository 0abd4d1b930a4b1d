// The keys that the attempts of one call have sent. A key names the intent: a repeat that brings another one is not
// recognised, and takes effect a second time.

import { RepriseError } from '../../kernel/index.js'

/** What was sent to one target. */
interface Sent {
  readonly keys: Set<string>
  /** The attempts that sent a key of an earlier attempt, or the first ones of all. */
  readonly attempts: Set<number>
}

// Beyond them nobody looks: what is kept for a check has a limit.
const mostTargets = 100
const mostKeys = 1_000

/** The keys of one call, by target. */
export class SentKeys {
  readonly #targets = new Map<string, Sent>()
  readonly #all = new Set<string>()

  /**
   * A key is about to be sent. In a repeat the first key for a target must be one that an earlier attempt sent there;
   * after it, more may follow, since an earlier attempt may not have come that far. Refuses with KEY_PER_ATTEMPT.
   *
   * @param target Undefined: not known. Then a key that is sent to any target is as good.
   */
  demandSame(target: string | undefined, key: string, attempt: number): void {
    const name = target ?? ''
    const sent = this.#targets.get(name)
    if (target === undefined && this.#all.has(key)) sent?.attempts.add(attempt)
    else if (sent === undefined) {
      if (this.#targets.size < mostTargets)
        this.#targets.set(name, { keys: new Set([key]), attempts: new Set([attempt]) })
    } else if (sent.keys.has(key)) sent.attempts.add(attempt)
    else if (sent.attempts.has(attempt)) {
      if (sent.keys.size < mostKeys) sent.keys.add(key)
    } else if (sent.keys.size < mostKeys) throw keyPerAttempt(attempt)
    if (this.#all.size < mostKeys) this.#all.add(key)
  }
}

function keyPerAttempt(attempt: number): RepriseError {
  const message = `Attempt ${attempt} was about to send another key than the attempts before it: a repeat would not be recognised. Mint the key once, before the first attempt.`
  return new RepriseError('KEY_PER_ATTEMPT', message, { details: { attempt } })
}
