// The body of a request, as a schema of Standard Schema gives it back.

import { issuePointer, type StandardSchema } from '../../../kernel/index.js'
import { type HttpRequest, invalid } from './http-request.js'

/** As many issues are told: a list of a thousand wrong members says no more. */
const mostErrors = 20
const mostDetail = 500

/**
 * The body, read as JSON and checked by a schema. Throws an answer 400 that is never stored, whose `errors` say what
 * the schema found, and where.
 */
export async function bodyBySchema<Input>(request: HttpRequest, schema: StandardSchema<Input>): Promise<Input> {
  const result = await schema['~standard'].validate(request.json())
  if (result.issues === undefined) return result.value
  const errors = result.issues.slice(0, mostErrors).map((issue) => ({
    detail: String(issue.message).slice(0, mostDetail),
    pointer: `#${encodeURI(issuePointer(issue))}`,
  }))
  throw invalid(400, 'The body does not fit the schema of this route. Nothing was carried out.', errors)
}
