// The body of a request, from a stream of Node or of the fetch standard: as it arrived, up to a limit.

import { inTime, isRepriseError, RepriseError } from '../../../kernel/index.js'

/**
 * A stream of Node that carries a body, and what a parser before us may have left: `IncomingMessage` is one. Only the
 * parts that are used, since whoever has no Node may have no types of Node either.
 */
export interface BodySource {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** The bytes as a parser kept them; many can. */
  readonly rawBody?: unknown
  /** Whether all of it was read. */
  readonly readableEnded: boolean
  /** Whether somebody has begun to read it. */
  readonly readableDidRead: boolean
  readonly destroyed: boolean
  on(event: 'data', listener: (part: Uint8Array) => void): this
  on(event: 'error', listener: (error: Error) => void): this
  on(event: 'end' | 'close', listener: () => void): this
  off(event: 'data', listener: (part: Uint8Array) => void): this
  off(event: 'error', listener: (error: Error) => void): this
  off(event: 'end' | 'close', listener: () => void): this
  /** Lets the rest flow by. */
  resume(): unknown
}

/**
 * Reads the body of a request of `node:http`. Rejects with BODY_TOO_LARGE, with BODY_CUT where the client went away,
 * and with BODY_CONSUMED where a parser read it and kept no bytes.
 *
 * @param advice What to do about BODY_CONSUMED, in the words of the framework. Default: in general words.
 */
export async function readNodeBody(source: BodySource, mostBytes: number, advice?: string): Promise<Uint8Array> {
  const kept = source.rawBody
  if (typeof kept === 'string' || kept instanceof Uint8Array) return limited(Buffer.from(kept), mostBytes)
  if (Number(source.headers['content-length'] ?? 0) > mostBytes) throw tooLarge(mostBytes)
  if (source.readableEnded || source.readableDidRead) throw consumed(advice)
  // Nothing would be heard of it any more.
  if (source.destroyed) throw cut()
  const parts: Uint8Array[] = []
  let size = 0
  // Not for await: leaving that early destroys the stream, and with it the connection that the refusal is to be sent
  // on.
  return new Promise((resolve, reject) => {
    const end = (error?: RepriseError): void => {
      source.off('data', onData).off('end', end).off('error', onError).off('close', onClose)
      if (error !== undefined) reject(error)
      else resolve(parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts, size))
    }
    const onData = (part: Uint8Array): void => {
      size += part.length
      parts.push(part)
      if (size <= mostBytes) return
      end(tooLarge(mostBytes))
      source.resume()
    }
    const onError = (error: Error): void => end(cut(error))
    const onClose = (): void => end(cut())
    source.on('data', onData).on('end', end).on('error', onError).on('close', onClose)
  })
}

/** A stream of Node whose body can be put back once it was read. */
export interface PeekedSource extends BodySource {
  /** Whether all of the message has arrived. */
  readonly complete: boolean
  on(event: 'readable', listener: () => void): this
  on(event: 'data', listener: (part: Uint8Array) => void): this
  on(event: 'error', listener: (error: Error) => void): this
  on(event: 'end' | 'close', listener: () => void): this
  off(event: 'readable', listener: () => void): this
  off(event: 'data', listener: (part: Uint8Array) => void): this
  off(event: 'error', listener: (error: Error) => void): this
  off(event: 'end' | 'close', listener: () => void): this
  read(): Uint8Array | null
  unshift(part: Uint8Array): void
}

/**
 * Reads the body of a request of `node:http` and puts it back, so that a parser or a handler behind the route reads it
 * as if nobody had. Rejects like {@link readNodeBody}.
 */
export async function peekNodeBody(source: PeekedSource, mostBytes: number, advice?: string): Promise<Uint8Array> {
  const isFree = !source.readableEnded && !source.readableDidRead && !source.destroyed
  const isLarge = Number(source.headers['content-length'] ?? 0) > mostBytes
  if (source.rawBody !== undefined || !isFree || isLarge) return readNodeBody(source, mostBytes, advice)
  const parts: Uint8Array[] = []
  let size = 0
  return new Promise((resolve, reject) => {
    const end = (error?: RepriseError): void => {
      source.off('readable', onReadable).off('error', onError).off('close', onClose)
      if (error !== undefined) {
        reject(error)
        source.resume()
        return
      }
      const whole = Buffer.concat(parts, size)
      // The stream tells its end in the next turn, and only while it is empty: what is put back now comes before that.
      if (size > 0) source.unshift(whole)
      resolve(whole)
    }
    const onReadable = (): void => {
      for (let part = source.read(); part !== null; part = source.read()) {
        size += part.length
        parts.push(part)
        if (size <= mostBytes) continue
        end(tooLarge(mostBytes))
        return
      }
      if (source.complete) end()
    }
    const onError = (error: Error): void => end(cut(error))
    const onClose = (): void => end(cut())
    source.on('readable', onReadable).on('error', onError).on('close', onClose)
  })
}

/**
 * Reads the body of a Request of the fetch standard, until its signal aborts. Rejects with BODY_TOO_LARGE, BODY_CUT and
 * BODY_CONSUMED, and lets go of what was not read.
 */
export async function readFetchBody(request: Request, mostBytes: number): Promise<Uint8Array> {
  if (request.bodyUsed) throw consumed()
  if (request.body === null) return new Uint8Array(0)
  if (Number(request.headers.get('content-length') ?? 0) > mostBytes) throw tooLarge(mostBytes)
  const { signal } = request
  if (signal.aborted) throw cut(signal.reason)
  const reader = request.body.getReader()
  const readAll = async (): Promise<Uint8Array> => {
    const parts: Uint8Array[] = []
    let size = 0
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return Buffer.concat(parts, size)
      size += value.length
      if (size > mostBytes) throw tooLarge(mostBytes)
      parts.push(value)
    }
  }
  try {
    return await inTime({ signal }, readAll())
  } catch (error) {
    // Ends the read that is under way.
    reader.cancel(error).catch(() => {})
    throw isRepriseError(error, 'BODY_TOO_LARGE') ? error : cut(error)
  }
}

/** Bytes that somebody else has read. Refuses with BODY_TOO_LARGE. */
export function limited(bytes: Uint8Array, mostBytes: number): Uint8Array {
  if (bytes.length > mostBytes) throw tooLarge(mostBytes)
  return bytes
}

function tooLarge(limit: number): RepriseError {
  return new RepriseError('BODY_TOO_LARGE', `The body has more than ${limit} bytes.`, { details: { limit } })
}

function cut(...cause: [unknown?]): RepriseError {
  const message = 'The client went away before its body had arrived.'
  return new RepriseError('BODY_CUT', message, cause.length === 0 ? {} : { cause: cause[0] })
}

const usualAdvice = 'Put the route before the parser, or let the parser keep the bytes as rawBody.'

function consumed(advice: string = usualAdvice): RepriseError {
  return new RepriseError('BODY_CONSUMED', `The body was read before the route could see its bytes. ${advice}`)
}
