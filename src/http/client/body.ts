// Bodies: what is sent is fixed before the first attempt, so that every attempt sends the same bytes under the same
// key; and what is read has a limit.

import { inTime, RepriseError, type WaitLimits } from '../../kernel/index.js'

/** Whatever fetch accepts as a body. */
type RequestBody = NonNullable<RequestInit['body']>

/** A body that no longer changes. */
export interface FrozenBody {
  /** What fetch is given. */
  readonly content: RequestBody | undefined
  /** Whether it can be sent again. A stream cannot. */
  readonly isRepeatable: boolean
  /** Whether fetch has to be told that the answer may come before the body is sent. */
  readonly isStream: boolean
  /** The media type it was written in, where fetch cannot know. */
  readonly type?: string
}

/**
 * Fixes a body. Bytes are copied, forms are written out once with one boundary. Streams, and forms larger than the
 * limit, are left as they are and can be sent once.
 *
 * @param maxBytes The largest form that is held in memory.
 * @param limits How long the files of a form may take to be read.
 */
export async function freezeBody(body: unknown, maxBytes: number, limits: WaitLimits = {}): Promise<FrozenBody> {
  if (body === undefined || body === null) return frozen(undefined)
  if (typeof body === 'string' || body instanceof Blob) return frozen(body)
  if (body instanceof URLSearchParams) return frozen(new URLSearchParams(body))
  if (body instanceof ArrayBuffer) return frozen(new Uint8Array(body.slice(0)))
  if (ArrayBuffer.isView(body)) {
    return frozen(new Uint8Array(new Uint8Array(body.buffer, body.byteOffset, body.byteLength)))
  }
  if (isForm(body)) {
    const copy = new FormData()
    for (const [name, value] of body) copy.append(name, value as Blob)
    if (sizeOf(copy) > maxBytes) return { content: copy, isRepeatable: false, isStream: false }
    // Each time a form is written it gets another boundary, which would be another content under the same key.
    // Not as a Blob, whose type is in lower case, unlike the boundary in the body.
    const written = new Response(copy)
    const type = written.headers.get('content-type')
    const bytes = new Uint8Array(await inTime(limits, written.arrayBuffer()))
    return { ...frozen(bytes), ...(type !== null && { type }) }
  }
  if (body instanceof ReadableStream || (typeof body === 'object' && Symbol.asyncIterator in body)) {
    return { content: body as RequestBody, isRepeatable: false, isStream: true }
  }
  return frozen(String(body))
}

/**
 * Fixes the body of a Request, which is a stream whatever it was made from: up to the limit it is held in memory. A
 * larger one is sent once, what was read of it first. Rejects when a limit ends the wait, and lets go of the stream.
 */
export async function freezeStream(
  stream: ReadableStream<Uint8Array>,
  maxBytes: number,
  limits: WaitLimits = {},
): Promise<FrozenBody> {
  limits.signal?.throwIfAborted()
  const reader = stream.getReader()
  const parts: Uint8Array[] = []
  const readParts = async (): Promise<boolean> => {
    for (let length = 0; length <= maxBytes; ) {
      const { done, value } = await reader.read()
      if (done) return true
      parts.push(value)
      length += value.length
    }
    return false
  }
  try {
    if (await inTime(limits, readParts())) return frozen(new Blob(parts as never))
  } catch (error) {
    // Ends the read that is under way.
    reader.cancel(error).catch(() => {})
    throw error
  }
  const rest = new ReadableStream({
    async pull(controller) {
      const next = parts.shift() ?? (await reader.read()).value
      if (next === undefined) controller.close()
      else controller.enqueue(next)
    },
    cancel: (reason) => reader.cancel(reason),
  })
  return { content: rest as RequestBody, isRepeatable: false, isStream: true }
}

/**
 * The bytes of a stream. Refuses more than the limit with BODY_TOO_LARGE, and lets go of the rest.
 *
 * @param status That of a success whose body it is, which the refusal then tells.
 */
export async function bytesOf(
  stream: ReadableStream<Uint8Array> | null,
  maxBytes: number,
  status?: number,
): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  let length = 0
  for await (const part of stream ?? []) {
    length += part.length
    // Leaving the loop cancels the stream.
    if (length > maxBytes) {
      const [after, details] =
        status === undefined ? ['The'] : [`The server answered ${status}, so it most likely acted, but the`, { status }]
      throw new RepriseError('BODY_TOO_LARGE', `${after} body has more than ${maxBytes} bytes.`, {
        details: { ...details, maxBytes },
      })
    }
    parts.push(part)
  }
  const bytes = new Uint8Array(length)
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

function frozen(content: RequestBody | undefined): FrozenBody {
  return { content, isRepeatable: true, isStream: false }
}

// Packages that bring a fetch bring a FormData as well.
function isForm(body: unknown): body is Iterable<[string, string | Blob]> {
  return body instanceof FormData || Object.prototype.toString.call(body) === '[object FormData]'
}

function sizeOf(form: FormData): number {
  let bytes = 0
  for (const [name, value] of form) bytes += name.length + (typeof value === 'string' ? value.length * 3 : value.size)
  return bytes
}
