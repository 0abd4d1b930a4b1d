// An answer as a `Response` of the fetch standard.

import { type Answer, discardBody, isBodiless } from '../core/index.js'
import { setFields } from './fields.js'

/**
 * An answer as a `Response`.
 *
 * @param method The request's: an answer to HEAD says how long it would be, and carries nothing.
 * @param before Fields that others have set, which stay unless the answer says otherwise. They are changed.
 */
export async function fetchResponse(
  answer: Answer,
  method: string,
  before: Headers = new Headers(),
): Promise<Response> {
  const { status, body } = answer
  const headers = before
  setFields(
    {
      getHeader: (name) => (name === 'set-cookie' ? headers.getSetCookie() : (headers.get(name) ?? undefined)),
      setHeader: (name, value) => {
        headers.delete(name)
        for (const one of [value].flat()) headers.append(name, one)
      },
      removeHeader: (name) => headers.delete(name),
    },
    answer,
  )
  if (isBodiless(status) || method === 'HEAD') {
    await discardBody(answer)
    // A Response without a body would be given the length 0 by some servers, where the length is what HEAD asks for.
    return new Response(null, { status, headers })
  }
  if (body === null || typeof body === 'string' || body instanceof Uint8Array) {
    // As bytes: a text would be given a type where the answer has none.
    const bytes = body === null ? new Uint8Array(0) : Buffer.from(body as string)
    return new Response(bytes.length === 0 ? null : bytes, { status, headers })
  }
  return new Response(streamOf(body), { status, headers })
}

/**
 * A body as a stream of the fetch standard, read no faster than it is sent. Whoever cancels it ends what makes the
 * body.
 */
export function streamOf(parts: AsyncIterable<Uint8Array | string>): ReadableStream<Uint8Array<ArrayBuffer>> {
  const iterator = parts[Symbol.asyncIterator]()
  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        const next = await iterator.next()
        if (next.done) controller.close()
        else controller.enqueue(next.value as Uint8Array<ArrayBuffer>)
      },
      async cancel() {
        await discardBody({ body: { [Symbol.asyncIterator]: () => iterator } })
      },
    },
    { highWaterMark: 0 },
  )
}
