// The context of Hono: a request as facts, and how an answer leaves.

import type { Context } from 'hono'
import { RepriseError } from '../../kernel/index.js'
import { type Answer, limited, type RequestFacts, readFetchBody } from '../core/index.js'
import { fetchResponse, fieldsOf } from '../wire/index.js'

/**
 * Has Hono send an answer.
 *
 * @param before Fields that others have set.
 */
export async function answerContext(c: Context, answer: Answer, before: Headers): Promise<Response> {
  const response = await fetchResponse(answer, c.req.method, before)
  // Hono puts the fields of an earlier c.res over those of a new one, so the one it has must go.
  c.res = undefined
  c.res = response
  return response
}

/** The facts of a request. */
export function factsOf(c: Context): RequestFacts {
  const { raw } = c.req
  const { origin, pathname, search } = new URL(raw.url)
  return {
    method: raw.method,
    target: pathname + search,
    origin,
    fields: fieldsOf(flatFields(c)),
    params: c.req.param() as Record<string, string>,
    readBody: async (mostBytes) => (await cachedBody(c, mostBytes)) ?? keptBody(c, await readFetchBody(raw, mostBytes)),
  }
}

// On Node the fields are there one by one; elsewhere Headers has joined what was sent twice, and a key with a comma is
// refused all the same.
function flatFields(c: Context): readonly string[] {
  const { incoming } = Object(c.env) as { readonly incoming?: { readonly rawHeaders?: readonly string[] } }
  return Array.isArray(incoming?.rawHeaders) ? incoming.rawHeaders : [...c.req.raw.headers].flat()
}

// What a validator has read before is kept by Hono: as bytes, or as a text that stands for them if none was replaced in
// it.
async function cachedBody(c: Context, mostBytes: number): Promise<Uint8Array | undefined> {
  const { arrayBuffer, text } = c.req.bodyCache
  if (arrayBuffer !== undefined) return limited(new Uint8Array(await arrayBuffer), mostBytes)
  if (text === undefined) return undefined
  const known = await text
  if (!known.includes('\ufffd')) return limited(Buffer.from(known), mostBytes)
  throw new RepriseError('BODY_CONSUMED', 'The body was read as text before the route could see its bytes.')
}

// A body can be read once. What Hono finds here is where c.req.json() and its kind look first: a copy each time, so
// that no run sees what another has done to it.
function keptBody(c: Context, bytes: Uint8Array): Uint8Array {
  Object.defineProperty(c.req.bodyCache, 'arrayBuffer', {
    enumerable: true,
    get: () => Promise.resolve(Uint8Array.from(bytes).buffer),
  })
  return bytes
}
