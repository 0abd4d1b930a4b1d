// The body of an answer as a stream of the fetch standard, read no faster than it is sent.

import type { FinishedAnswer } from '../core/index.js'

/** A body as a stream. Whoever cancels it ends what makes the body. */
export function streamOf(parts: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array<ArrayBuffer>> {
  const iterator = parts[Symbol.asyncIterator]()
  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        const next = await iterator.next()
        if (next.done) controller.close()
        else controller.enqueue(next.value as Uint8Array<ArrayBuffer>)
      },
      async cancel() {
        await end(iterator)
      },
    },
    { highWaterMark: 0 },
  )
}

/** Ends what makes a body that nobody is sent. */
export async function letGo(body: FinishedAnswer['body']): Promise<void> {
  if (!(body instanceof Uint8Array)) await end(body[Symbol.asyncIterator]())
}

async function end(iterator: AsyncIterator<Uint8Array>): Promise<void> {
  try {
    await iterator.return?.()
  } catch {
    // Nobody waits for it any more.
  }
}
