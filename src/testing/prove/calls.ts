// One intent and its calls: what each was told, until one is answered.

import { inspect } from 'node:util'
import { type Deadline, inTime, isRepriseError, remainingMs, sleep } from '../../kernel/index.js'
import type { CallVerdict } from '../checker.js'

/** What one call was told. */
export interface Heard {
  readonly verdict: CallVerdict
  /** The result of a call that was answered, as text. */
  readonly result?: string
  /** What the others were told, for the report. */
  readonly says?: string
  /** Whether it was told that the outcome is unknown until a person settles it, which a repeat does not change. */
  readonly held?: boolean
}

/** One intent: its calls and all that they heard. */
export class ProofIntent {
  readonly id: string
  readonly heard: Heard[] = []
  readonly #call: (id: string) => Promise<Heard>
  readonly #deadline: Deadline

  constructor(id: string, call: (id: string) => Promise<Heard>, deadline: Deadline) {
    this.id = id
    this.#call = call
    this.#deadline = deadline
  }

  /** Calls once. Never rejects; a call that is not answered in time is unknown. */
  async call(): Promise<Heard> {
    const limitMs = Math.max(1, remainingMs(this.#deadline))
    const heard = await inTime({ limitMs }, this.#call(this.id)).catch(
      (): Heard => ({ verdict: 'unknown', says: 'no answer in time' }),
    )
    this.heard.push(heard)
    return heard
  }

  /** Calls until an answer is there, a person has to give it, or the time is over. */
  async untilAnswered(): Promise<void> {
    for (let waitMs = 0; this.isOpen && remainingMs(this.#deadline) > waitMs; waitMs = Math.min(10 + waitMs * 2, 500)) {
      if (waitMs > 0) await sleep(waitMs)
      await this.call()
    }
  }

  /** Whether nobody has told yet how it ended, and a repeat may find out. */
  get isOpen(): boolean {
    return this.heard.at(-1)?.held !== true && !this.heard.some(({ verdict }) => verdict !== 'unknown')
  }
}

/** Runs a call of the caller's and says what it was told. A `Response` is read by its status. */
export async function hear(call: () => unknown): Promise<Heard> {
  try {
    const result = await call()
    return result instanceof Response ? await ofResponse(result) : { verdict: 'committed', result: asText(result) }
  } catch (error) {
    const code = isRepriseError(error) ? error.code : undefined
    return {
      verdict: 'unknown',
      says: error instanceof Error ? error.message : asText(error),
      held: code === 'OPERATION_UNKNOWN' || code === 'UNKNOWN_OUTCOME',
    }
  }
}

// In flight, too early, too many: a repeat may be answered otherwise. What is refused for good stays refused.
const passing = new Set([408, 409, 425, 429])

async function ofResponse(response: Response): Promise<Heard> {
  const { status } = response
  const result = `${status} ${await response.text()}`
  if (status < 400) return { verdict: 'committed', result }
  return { verdict: status >= 500 || passing.has(status) ? 'unknown' : 'aborted', says: result }
}

// Members in one order, and on one line: equal results are equal texts.
function asText(value: unknown): string {
  return inspect(value, { depth: 20, sorted: true, breakLength: Number.POSITIVE_INFINITY, maxArrayLength: 1_000 })
}
