// What a method of a controller returned or threw, as the answer that Nest would have made of it.

import type { ServerResponse } from 'node:http'
import { RepriseError } from '../../kernel/index.js'
import { type Answered, isAnswered, reply } from '../core/index.js'

/** What `@Redirect` says of a method; undefined: it says nothing. */
export function redirectOf(method: object): { readonly url: string; readonly statusCode?: number } | undefined {
  const said = Object(Reflect.getMetadata('__redirect__', method)) as { readonly url?: unknown }
  return typeof said.url === 'string' ? (said as { readonly url: string }) : undefined
}

/** Refuses a method whose answer is made by Nest after the method has returned, where nothing of it could be stored. */
export function demandStorable(method: object): void {
  for (const [key, decorator] of [
    ['__renderTemplate__', '@Render'],
    ['__sse__', '@Sse'],
  ] as const) {
    if (Reflect.getMetadata(key, method) === undefined) continue
    const message = `A method with ${decorator} cannot be a repeatable route: what leaves is made after it has returned.`
    throw new RepriseError('OPERATION_INVALID', message, { details: { option: decorator } })
  }
}

/** The answer of what a method returned. */
export function answerFrom(returned: unknown, method: object, response: ServerResponse): Answered {
  if (isAnswered(returned)) return returned
  const redirect = redirectOf(method)
  if (redirect !== undefined) return redirected({ ...redirect, ...chosen(returned) })
  const { statusCode } = response
  if (isFile(returned)) {
    const { type, disposition } = returned.getHeaders()
    const headers = {
      'content-type': saidBefore(response, 'content-type') ?? type,
      'content-disposition': saidBefore(response, 'content-disposition') ?? disposition,
    }
    return reply(statusCode, returned.getStream(), headers)
  }
  const isNothing = returned === undefined || returned === null
  return reply(statusCode, returned, isNothing ? {} : { 'content-type': saidBefore(response, 'content-type') })
}

/**
 * The answer of an `HttpException` below 500; undefined: it is none. Told by its shape, as there may be two copies of
 * Nest.
 */
export function exceptionOf(error: unknown): Answered | undefined {
  const exception = Object(error) as { getStatus?(): number; getResponse?(): string | object }
  if (typeof exception.getStatus !== 'function' || typeof exception.getResponse !== 'function') return undefined
  const [statusCode, body] = [exception.getStatus(), exception.getResponse()]
  if (statusCode >= 500) return undefined
  return reply(statusCode, typeof body === 'string' ? { statusCode, message: body } : body)
}

// The parts of a StreamableFile that are needed, told by its shape for the same reason. Its length is counted where the
// whole is kept.
interface File {
  getStream(): AsyncIterable<Uint8Array>
  getHeaders(): { readonly type?: string; readonly disposition?: string | readonly string[] }
}

function isFile(value: unknown): value is File {
  const { getStream, getHeaders } = Object(value) as Partial<File>
  return typeof getStream === 'function' && typeof getHeaders === 'function'
}

// What @Header says comes first, as in Nest.
function saidBefore(response: ServerResponse, name: string): string | undefined {
  const value = response.getHeader(name)
  return value === undefined ? undefined : String(value)
}

function chosen(returned: unknown): { readonly url?: string; readonly statusCode?: number } {
  const { url, statusCode } = Object(returned) as { readonly url?: string; readonly statusCode?: number }
  return { ...(url ? { url } : {}), ...(statusCode ? { statusCode } : {}) }
}

function redirected({ url, statusCode }: { readonly url: string; readonly statusCode?: number }): Answered {
  // As Express does: what cannot stand in a field is encoded.
  return reply(statusCode ?? 302, undefined, { location: url.replace(/[^\x21-\x7e]+/g, (part) => encodeURI(part)) })
}
