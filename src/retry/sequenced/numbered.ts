// A call whose guard is a number in a sequence: every attempt gets the number, and the producer is told how it ended.

import { acceptedHeader, type Key, type SequenceNumber } from '../../identity/index.js'
import type { Deadline } from '../../kernel/index.js'
import { answerField } from '../classify/http.js'
import { type Guard, guardOf } from '../guard.js'
import type { AttemptRecord } from '../history.js'
import { type Attempt, type Body, demandRunOptions, type RunOptions } from '../options.js'
import { failureIn } from '../run/returned.js'
import { type Classifier, isReturnedVerdict } from '../verdict.js'
import { type Numbering, numberingOf, type Producer } from './producer.js'

class NumberedAttempt implements Attempt {
  readonly number: number
  readonly key: Key | undefined
  readonly deadline: Deadline | undefined
  readonly sequence: SequenceNumber
  readonly #attempt: Attempt

  constructor(attempt: Attempt, sequence: SequenceNumber) {
    this.number = attempt.number
    this.key = attempt.key
    this.deadline = attempt.deadline
    this.sequence = sequence
    this.#attempt = attempt
  }

  // Asked for, since a signal is only made for who wants it.
  get signal(): AbortSignal {
    return this.#attempt.signal
  }
}

/** The guard of a numbered intent. */
export interface SequencedGuard extends Guard<undefined> {
  readonly rung: 'sequence'
}

/** A guard as the policy sees it, so that only programs that number their intents have what does so. */
export interface NumberedGuard {
  /** Makes a call under the next number; undefined: the guard has none. */
  readonly numbered?: <Result>(
    classify: Classifier,
    body: Body<Result>,
    options: RunOptions<Result> | undefined,
    make: (body: Body<Result>, options: RunOptions<Result>) => Promise<Result>,
  ) => Promise<Result>
}

/**
 * The receiver accepts each number once and in order, and refuses epochs that are over. The body gets the number.
 *
 * @param given A producer, which numbers this intent when it is first run; or a number that is kept elsewhere.
 * @example
 * ```ts
 * import { producer, retryPolicy, sequenced } from 'reprise/retry'
 *
 * const till = producer({ name: 'till-1', epoch: 7 })
 * await retryPolicy().run(sequenced(till), async ({ sequence }) => console.log(sequence.number))
 * ```
 * ```text
 * 1
 * ```
 */
export function sequenced(given: Producer | SequenceNumber): SequencedGuard {
  const numbering = numberingOf(given)
  const numbered: NonNullable<NumberedGuard['numbered']> = (...call) => callNumbered(numbering, ...call)
  return guardOf('sequence', undefined, undefined, numbered) as SequencedGuard
}

async function callNumbered<Result>(
  numbering: Numbering,
  classify: Classifier,
  body: Body<Result>,
  options: RunOptions<Result> | undefined,
  make: (body: Body<Result>, options: RunOptions<Result>) => Promise<Result>,
): Promise<Result> {
  // Before the number is taken: what is refused later has to give it back.
  if (options !== undefined) demandRunOptions(options)
  const sequence = numbering.begin()
  const history: AttemptRecord[] = options?.history ?? []
  const before = history.length
  let [made, accepted] = [0, false]
  const numbered: Body<Result> = async (attempt) => {
    made += 1
    try {
      const result = await body(new NumberedAttempt(attempt, sequence))
      const isObject = typeof result === 'object' && result !== null
      if (!isObject || failureIn(result, classify) === undefined || saysAccepted(result, sequence)) accepted = true
      return result
    } catch (error) {
      accepted ||= saysAccepted(error, sequence)
      throw error
    }
  }
  try {
    return await make(numbered, { ...options, history })
  } finally {
    const failed = history.slice(before)
    // An attempt without a record was given up while it was out.
    const isUnsent = failed.length === made && failed.every(({ verdict }) => verdict.happened === 'no')
    numbering.end(accepted ? 'accepted' : isUnsent ? 'unsent' : 'unknown')
  }
}

// Whether the receiver says of an answer, whatever its status, that the number is used up. It may know the producer by
// another name; an epoch is given out once.
function saysAccepted(result: unknown, { epoch, number }: SequenceNumber): boolean {
  const answer = isReturnedVerdict(result) ? result.value : result
  const said = acceptedHeader.read(answerField(answer, acceptedHeader.name.toLowerCase()))
  return said?.epoch === epoch && said.number === number
}
