// What the body of a leased operation gets: its calls to the outside, the keys for them, and the claim they stand on.

import type { Key } from '../../identity/index.js'
import type { Deadline } from '../../kernel/index.js'

/** What one external call gets. */
export interface EffectCall {
  /** The key of this step: send it. It is the same in every run of the operation for the same intent. */
  readonly key: Key
  /** Aborted when the claim is lost or the time is over. */
  readonly signal: AbortSignal
  /** How many claims there were on the key, this one included. */
  readonly attempt: number
  /** The claim's number, for receivers that can refuse smaller ones than they have seen. */
  readonly fence: number
}

/**
 * The claim under which a body works. It protects the record: only its owner can write the outcome. It does not protect
 * the outside world: a call that was sent while the lease was held may arrive after it has ended. What protects there
 * is the derived key, or a receiver that compares fences.
 */
export interface Lease {
  /**
   * Makes an external call. Before that it checks that the last confirmed renewal is recent enough for the lease not to
   * end meanwhile, and renews it first where it is not; refuses with LEASE_LOST or DEADLINE_EXCEEDED, in a run that
   * follows another one also with OPERATION_UNKNOWN where the receiver may have forgotten the key, and then nothing is
   * sent. Repeats belong inside of `call`, under its one key.
   *
   * @param step A fixed name chosen in the code, such as `'capture'`. One step, one call: a second one is refused with
   * STEP_INVALID, unless every earlier one in this run was proven unsent.
   */
  effect<Value>(step: string, call: (call: EffectCall) => PromiseLike<Value> | Value): Promise<Value>
  /** The key of a step: `derive` of the record's name. */
  key(step: string): Key
  /**
   * Declares that nothing was sent, by any means, and gives the error back to be thrown: `throw lease.notSent(error)`.
   * The key is then free again.
   */
  notSent<Thrown>(error: Thrown): Thrown
  /** Renews the lease now, and settles when the store has confirmed it. */
  renew(): Promise<void>
  /** Names the claim. */
  readonly token: string
  /** The claim's number, from a sequence of the whole store that never restarts. */
  readonly fence: number
  /** How many claims there were on the key, this one included. */
  readonly attempt: number
  /** Aborted with LEASE_LOST when the claim is lost, with DEADLINE_EXCEEDED when the time is over. */
  readonly signal: AbortSignal
  /** When nothing more may be sent, and the lease is no longer renewed. */
  readonly deadline: Deadline
}
