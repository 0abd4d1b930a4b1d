// What is known of a call while its attempts go on: which of them may have happened, whether one of them was redirected
// out of reach of the guard, and which refused answers may still be handed over.

import { cancelBody } from '../../retry/index.js'

/** A call so far. One for all attempts of a call, also for those that are out at the same time. */
export class CallSoFar {
  /** The attempts that the guard did not follow to another origin end the repeats: the number of the first one. */
  strayed: number | undefined
  #begun = 0
  #harmless = 0
  readonly #refused = new Set<Response>()
  #latestMaybe: Response | undefined

  /**
   * An attempt begins. Answers that asked for it have served their turn, but for the one that may come after an effect.
   */
  begin(): void {
    this.#begun += 1
    this.#release(this.#latestMaybe)
  }

  /** An attempt failed, and had no effect. */
  provedHarmless(): void {
    this.#harmless += 1
  }

  /** Whether an attempt other than the one that asks may have happened. One that is still out may. */
  get mayHaveHappened(): boolean {
    return this.#begun - 1 > this.#harmless
  }

  /** Keeps a refused answer: the latest that may come after an effect is the one that the runner falls back upon. */
  refuse(response: Response, isMaybe: boolean): void {
    this.#refused.add(response)
    if (isMaybe) this.#latestMaybe = response
  }

  /** The call is over, with this answer if there is one; the others are let go. */
  end(answer: Response | undefined): void {
    this.#release(answer)
  }

  #release(kept: Response | undefined): void {
    for (const response of this.#refused) {
      if (response === kept) continue
      this.#refused.delete(response)
      cancelBody(response)
    }
  }
}
