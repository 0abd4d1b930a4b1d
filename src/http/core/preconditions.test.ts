import { expect, it } from 'vitest'
import { factsOf } from '../../../test/http/route-world.js'
import { checkPreconditions, entityTag } from './preconditions.js'
import { HttpRequest } from './request/http-request.js'

const now = entityTag(7)
const other = entityTag(8)
const check = (headers: Record<string, string>, etag: string | undefined = now, method = 'PUT', required?: boolean) =>
  checkPreconditions(new HttpRequest(factsOf({ method, headers }), new Uint8Array()), {
    etag,
    ...(required === undefined ? {} : { required }),
  })

it.each([
  [{ 'if-match': now }, now, 'PUT', undefined],
  [{ 'if-match': `${other}, ${now}` }, now, 'PUT', undefined],
  [{ 'if-match': '*' }, now, 'PUT', undefined],
  [{ 'if-match': '*' }, undefined, 'PUT', 412],
  [{ 'if-match': other }, now, 'PUT', 412],
  [{ 'if-match': `W/${now}` }, now, 'PUT', 412],
  [{ 'if-match': 'nonsense' }, now, 'PUT', 412],
  [{ 'if-none-match': '*' }, undefined, 'PUT', undefined],
  [{ 'if-none-match': '*' }, now, 'PUT', 412],
  [{ 'if-none-match': other }, now, 'PUT', undefined],
  [{ 'if-none-match': `W/${now}` }, now, 'GET', 304],
  [{ 'if-none-match': now }, now, 'HEAD', 304],
  [{}, now, 'PUT', 428],
  [{}, now, 'GET', undefined],
])('answers %j of a resource at %j to a %s with %j', (headers, etag, method, status) => {
  // An argument that is undefined would take its default.
  const request = new HttpRequest(factsOf({ method, headers }), new Uint8Array())
  const answer = checkPreconditions(request, { etag })
  expect(answer?.status).toBe(status)
  if (status === 412 && etag !== undefined) expect(Object.fromEntries(answer?.headers ?? [])['etag']).toBe(etag)
})

it('needs no version where it is told so, and has the addresses of the route', () => {
  expect(check({}, now, 'PUT', false)).toBeUndefined()
  const request = new HttpRequest(factsOf({ method: 'PUT' }), new Uint8Array())
  const answer = checkPreconditions(request, { etag: now, problems: 'https://x/' })
  expect(JSON.parse(String(answer?.body))).toMatchObject({ type: 'https://x/precondition-required' })
})

it('makes strong tags of versions and bytes', () => {
  expect(entityTag(7)).toMatch(/^"[\w-]{43}"$/)
  expect(new Set([entityTag(7), entityTag(8), entityTag('a'), entityTag(new Uint8Array([1]))]).size).toBe(4)
  expect(entityTag(7)).toBe(entityTag('7'))
})
