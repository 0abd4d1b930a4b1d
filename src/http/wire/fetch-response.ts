// An answer as a `Response` of the fetch standard.

import type { FinishedAnswer } from '../core/index.js'
import { isSent, mergeInto } from './response-fields.js'
import { letGo, streamOf } from './stream.js'

/**
 * An answer as a `Response`.
 *
 * @param method The request's: an answer to HEAD says how long it would be, and carries nothing.
 * @param before Fields that others have set, which stay unless the answer says otherwise. They are changed.
 */
export async function fetchResponse(
  answer: FinishedAnswer,
  method: string,
  before: Headers = new Headers(),
): Promise<Response> {
  const { status, body } = answer
  const headers = before
  mergeInto(
    {
      get: (name) => (name === 'set-cookie' ? headers.getSetCookie() : (headers.get(name) ?? undefined)),
      set: (name, value) => {
        headers.delete(name)
        for (const one of [value].flat()) headers.append(name, one)
      },
      remove: (name) => headers.delete(name),
    },
    answer,
  )
  if (!isSent(answer, method)) {
    await letGo(body)
    // A Response without a body would be given the length 0 by some servers, where the length is what HEAD asks for.
    return new Response(null, { status, headers })
  }
  if (body instanceof Uint8Array) {
    return new Response(body.length === 0 ? null : (body as Uint8Array<ArrayBuffer>), { status, headers })
  }
  return new Response(streamOf(body), { status, headers })
}
