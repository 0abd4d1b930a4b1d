// What a method of a controller returned or threw, as the answer that Nest would have made of it.

import type { ServerResponse } from 'node:http'
import { RepriseError } from '../../kernel/index.js'
import { type Answered, isAnswered, reply } from '../core/index.js'

/** What `@Redirect` says of a method; undefined: it says nothing. */
export function redirectOf(method: object): { readonly url: string; readonly statusCode?: number } | undefined {
  const said = Object(Reflect.getMetadata('__redirect__', method)) as { readonly url?: unknown }
  return typeof said.url === 'string' ? (said as { readonly url: string }) : undefined
}

/**
 * Refuses a method whose answer is not what it returns: one that Nest makes after the method has returned, or one that
 * the method writes to the response itself, before COMMIT. Nothing of it could be stored.
 *
 * @param writer What {@link writerIn} found.
 */
export function demandStorable(method: object, writer: string | undefined): void {
  for (const [key, decorator] of [
    ['__renderTemplate__', '@Render'],
    ['__sse__', '@Sse'],
  ] as const) {
    if (Reflect.getMetadata(key, method) === undefined) continue
    throw unstorable(decorator, 'what leaves is made after it has returned.')
  }
  if (writer === undefined) return
  throw unstorable(
    writer,
    'what it writes itself would leave before COMMIT. Return the answer, and set fields by @Res({ passthrough: true }).',
  )
}

/** The decorator of a parameter by which a method answers by itself; undefined: it has none. */
export function writerIn(target: object, name: string | symbol): string | undefined {
  if (Reflect.getMetadata('__responsePassthrough__', target.constructor, name) === true) return undefined
  const kinds = Object.keys(routeArguments(target, name)).map((key) => key.split(':')[0])
  // The numbers that Nest gives to the kinds of parameters.
  return kinds.includes('1') ? '@Res()' : kinds.includes('2') ? '@Next()' : undefined
}

/** What Nest's decorators say of the parameters of a method: one member for each, whose name begins with its kind. */
export function routeArguments(
  target: object,
  name: string | symbol,
): Readonly<Record<string, { readonly index: number }>> {
  return Object(Reflect.getMetadata('__routeArguments__', target.constructor, name))
}

function unstorable(decorator: string, why: string): RepriseError {
  const message = `A method with ${decorator} cannot be a repeatable route: ${why}`
  return new RepriseError('OPERATION_INVALID', message, { details: { option: decorator } })
}

/** What a response says before a method has returned: what Nest and its decorators have set. */
export type AnswerBefore = Pick<ServerResponse, 'statusCode' | 'getHeader'>

/** What a response says now, whatever becomes of it. */
export function saidOf(response: ServerResponse): AnswerBefore {
  const { statusCode } = response
  const fields = response.getHeaders()
  return { statusCode, getHeader: (name) => fields[name] }
}

/** The answer of what a method returned. */
export function answerFrom(returned: unknown, method: object, response: AnswerBefore): Answered {
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
function saidBefore(response: AnswerBefore, name: string): string | undefined {
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
