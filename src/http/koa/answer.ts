// How an answer leaves through Koa.

import { Readable } from 'node:stream'
import type { Context } from 'koa'
import type { Answer } from '../core/index.js'
import { setFields } from '../wire/index.js'

/** Has Koa send an answer. */
export function answerContext(ctx: Pick<Context, 'res' | 'status' | 'body' | 'remove'>, answer: Answer): void {
  const hadType = ctx.res.hasHeader('content-type')
  ctx.status = answer.status
  // Never null, of which Koa would make a 204.
  ctx.body = bodyOf(answer)
  // Koa has guessed a type; what has none is to leave without.
  if (!hadType) ctx.remove('content-type')
  setFields(ctx.res, answer)
}

function bodyOf({ body }: Answer): string | Buffer | Readable {
  if (body === null || typeof body === 'string') return body ?? ''
  return body instanceof Uint8Array ? Buffer.from(body) : Readable.from(body)
}
