// A person's decision about one dead letter: checked, written once, and told apart from somebody else's where the
// answer of the store was lost.

import { persistently, provesUnwritten } from '../../idempotency/index.js'
import {
  type Clock,
  type Duration,
  deadlineAfter,
  encodeTuple,
  isWellFormed,
  type Random,
  RepriseError,
  sha256,
} from '../../kernel/index.js'
import type { LetterDecision } from '../lanes.js'
import type { Decided, LetterStore, WhichLetter } from '../letters.js'
import { noteIn } from './letter.js'

/** Why nothing was decided. `decided`: somebody else's decision is under way. */
export type LetterRefusal = 'absent' | 'decided' | 'closed'

/** Where, when and how long. */
export interface LetterCall {
  readonly messages: LetterStore
  readonly clock: Clock
  readonly random: Random
  /** How long each question to the store may take. */
  readonly limit: Duration
}

/** Who decides, and why: as it is written. */
export type Decider = Pick<Decided, 'actor' | 'reason'>

const mostTries = 3

/**
 * Writes a decision. Undefined: it is written, by this call or by an earlier try of it whose answer was lost. Fails
 * with UPKEEP_UNKNOWN where the store stopped answering and it may have been written.
 */
export async function writeDecision(
  { messages, limit, ...time }: LetterCall,
  which: WhichLetter,
  decided: Decided,
): Promise<LetterRefusal | undefined> {
  const deadline = deadlineAfter(limit, time.clock)
  let mayBeWritten = false
  const onFailure = (error: unknown): void => {
    if (!provesUnwritten(error)) mayBeWritten = true
  }
  const asked = async (): Promise<LetterRefusal | undefined> => {
    // A letter that another decision was about may be open again by the time it is read.
    for (let tries = 0; tries < mostTries; tries += 1) {
      const { answer } = await persistently(time, deadline, (limits) => messages.decide(which, decided, limits), {
        onFailure,
      })
      if (answer) return undefined
      const { answer: letter } = await persistently(time, deadline, (limits) => messages.letter(which, limits))
      if (letter === undefined) return 'absent'
      if (mayBeWritten && isOf(decided, letter.note)) return undefined
      if (letter.state !== 'open') return letter.state === 'closed' ? 'closed' : 'decided'
    }
    return 'decided'
  }
  return asked().catch((error: unknown) => {
    if (!mayBeWritten) throw error
    const message = 'The decision may have been written: the store did not answer. The same one again does no harm.'
    throw new RepriseError('UPKEEP_UNKNOWN', message, { cause: error, details: { reader: which.reader } })
  })
}

function isOf({ decision, actor, reason }: Decided, text: string | undefined): boolean {
  const note = noteIn(text)
  return note !== undefined && note.decision === decision.is && note.actor === actor && note.reason === reason
}

const refusals: Readonly<Record<LetterRefusal, string>> = {
  absent: 'There is no such dead letter.',
  decided: 'A decision about the dead letter is under way.',
  closed: 'The dead letter is closed.',
}

/** Throws LETTER_REFUSED where nothing was decided; `details.because` says why. */
export function demandDecided(refusal: LetterRefusal | undefined): void {
  if (refusal !== undefined) {
    throw new RepriseError('LETTER_REFUSED', refusals[refusal], { details: { because: refusal } })
  }
}

/**
 * The id of the message that takes the place of an edited one: always the same for the same message, so that an edit
 * that is made again is recognised, and never that of another message.
 */
export function editedId({ source, id }: Pick<WhichLetter, 'source' | 'id'>): string {
  return `e1-${sha256(encodeTuple(['e1', source, id])).slice('sha256:'.length)}`
}

/** Who decides, and why, checked. */
export function deciderOf(given: { readonly actor: string; readonly reason?: string }, usual?: string): Decider {
  const { actor, reason = usual } = Object(given) as Partial<Decider>
  const isText = (value: unknown, most: number): value is string =>
    typeof value === 'string' && value.trim() !== '' && value.length <= most && isWellFormed(value)
  if (!isText(actor, 255)) {
    throw new RepriseError('ARGUMENT_INVALID', 'A decision needs an actor of 1 to 255 characters.')
  }
  if (!isText(reason, 1_000)) {
    throw new RepriseError('ARGUMENT_INVALID', 'A decision needs a reason of 1 to 1,000 characters.')
  }
  return { actor, reason }
}

/** A letter's name, checked. */
export function checkedWhich(which: WhichLetter): WhichLetter {
  const { reader, source, id } = Object(which) as Partial<WhichLetter>
  for (const [name, value] of Object.entries({ reader, source, id })) {
    if (typeof value === 'string' && value !== '') continue
    throw new RepriseError('ARGUMENT_INVALID', `A dead letter is named by reader, source and id: ${name} is missing.`)
  }
  return { reader, source, id } as WhichLetter
}

/** A decision that needs nothing else. */
export const redriveDecision: LetterDecision = { is: 'redrive' }
