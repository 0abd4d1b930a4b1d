// Refusals in the shape that a route gives them: a problem of RFC 9457, or what the clients of a service expect.

import { RepriseError } from '../../../kernel/index.js'
import { type Answer, answerOf, finish } from '../answer/answer.js'
import { type Problem, problem, problemOf } from '../problems.js'
import type { NamedProblem } from './error-problem.js'
import type { RouteOptions } from './options.js'

/** The part of a route that shapes refusals. */
export interface RefusalSettings extends Pick<RouteOptions<never, never>, 'refusal'> {
  /** What the `type` of problems begins with. */
  readonly problems: string
  readonly largestAnswer: number
}

/**
 * The answer that refuses a request. One that `refusal` shapes keeps the fields of the problem, such as `Retry-After`,
 * that it does not set itself. Where `refusal` throws or gives no refusal, the problem is the answer.
 *
 * @param mistaken Hears of that.
 */
export async function refusalAnswer(
  settings: RefusalSettings,
  named: NamedProblem,
  mistaken: (error: unknown) => void,
): Promise<Answer> {
  const { name, ...rest } = named
  const options = { ...rest, base: settings.problems }
  const plain = problem(name, options)
  if (settings.refusal === undefined) return plain
  try {
    return await shaped(settings.refusal, problemOf(name, options), plain, settings.largestAnswer)
  } catch (error) {
    mistaken(error)
    return plain
  }
}

async function shaped(
  refusal: NonNullable<RefusalSettings['refusal']>,
  refused: Problem,
  plain: Answer,
  mostBytes: number,
): Promise<Answer> {
  const answer = await finish(answerOf(refusal(refused)), mostBytes)
  if (answer.status < 400) throw new RepriseError('ARGUMENT_INVALID', 'A refusal has a status from 400 to 599.')
  const own = new Set(answer.headers.map(([name]) => name))
  const kept = plain.headers.filter(([name]) => name !== 'content-type' && !own.has(name))
  return { ...answer, headers: [...answer.headers, ...kept] }
}
