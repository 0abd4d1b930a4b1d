// The handlers of the subject as they would be without Reprise: of a request, and the transaction that is open, they
// make what a framework then writes.

import { type Answer, AnswerError, HttpRequest, type RequestFacts } from '../../../src/http/core/index.js'
import { attemptHeader } from '../../../src/identity/index.js'
import type { AtomicSubjectRoute } from './atomic-routes.js'
import type { Charge } from './charge.js'
import type { SubjectTransaction } from './ledger.js'

/** What a framework knows of a request. */
export interface Existing {
  readonly facts: RequestFacts
  readonly bytes: Uint8Array
  readonly user: string
  readonly tx: SubjectTransaction
}

/** What the handler of a route answers. */
export async function existing(
  { options, handle }: AtomicSubjectRoute,
  { facts, bytes, user, tx }: Existing,
): Promise<Answer> {
  const request = new HttpRequest(facts, bytes)
  const input = (options.parse as (request: HttpRequest) => Charge)(request)
  const callerAttempt = attemptHeader.read(request.header(attemptHeader.name))
  try {
    return await handle({ tx, input, principal: [user], callerAttempt })
  } catch (error) {
    if (error instanceof AnswerError) return error.answer
    throw error
  }
}
