import { expect, it } from 'vitest'
import { factsOf } from '../../../../test/http/route-world.js'
import { AnswerError } from '../answer/answer.js'
import { HttpRequest, invalid } from './http-request.js'

const request = (body = '', more: Parameters<typeof factsOf>[0] = {}) =>
  new HttpRequest({ ...factsOf({ body, ...more }), params: { id: '7' } }, Buffer.from(body))

it('shows what arrived, and a fresh copy each time', () => {
  const shown = request('{"a":[1]}', {
    target: '/a/b?c=d&c=e',
    type: 'Application/JSON; charset=utf-8',
    headers: { 'x-a': '1' },
  })
  expect([shown.method, shown.path, shown.search, shown.target, shown.size]).toEqual([
    'POST',
    '/a/b',
    'c=d&c=e',
    '/a/b?c=d&c=e',
    9,
  ])
  expect([shown.mediaType, shown.header('X-A'), shown.header('x-b'), shown.query().getAll('c')]).toEqual([
    'application/json',
    '1',
    undefined,
    ['d', 'e'],
  ])
  shown.bytes().fill(0)
  ;(shown.fields('x-a') as string[]).push('2')
  shown.query().set('c', 'x')
  expect([shown.json(), shown.fields('x-a'), shown.search]).toEqual([{ a: [1] }, ['1'], 'c=d&c=e'])
  expect(request('', { target: '*' })).toMatchObject({ path: '*', search: '' })
})

it.each(['constructor', '__proto__', 'toString'])('has no field called %s of its own accord', (name) => {
  expect([request().fields(name), request().header(name)]).toEqual([[], undefined])
})

it.each([
  ['{', {}, 400],
  ['\ud800', {}, 400],
  ['{}', { 'content-encoding': 'gzip' }, 415],
])('refuses to read %j under %j with %i', (body, headers, status) => {
  const bytes = body === '\ud800' ? new Uint8Array([0xff]) : Buffer.from(body)
  const shown = new HttpRequest(factsOf({ headers }), bytes)
  expect(() => shown.json()).toThrow(
    expect.objectContaining({ answer: expect.objectContaining({ status }), kept: false }),
  )
})

it('is a Request of the platform where one is wanted', async () => {
  const shown = request('abc', {
    target: '/a?b',
    type: 'text/plain',
    headers: { host: 'shop.example', ':authority': 'x' },
  }).toRequest()
  expect([shown.url, shown.method, shown.headers.get('content-type'), await shown.text()]).toEqual([
    'http://shop.example/a?b',
    'POST',
    'text/plain',
    'abc',
  ])
  expect(request('', { method: 'GET' }).toRequest().body).toBeNull()
  const facts = { ...factsOf({ target: '/a' }), origin: 'https://shop.example' }
  expect(new HttpRequest(facts, new Uint8Array()).toRequest().url).toBe('https://shop.example/a')
})

it('refuses a shape with a status of clients only', () => {
  const refusal = invalid(422, 'There is no amount.')
  expect(refusal).toBeInstanceOf(AnswerError)
  expect(refusal.problem).toEqual({ name: 'request-invalid', status: 422, detail: 'There is no amount.' })
  expect(JSON.parse(String(refusal.answer.body))).toMatchObject({ status: 422, detail: 'There is no amount.' })
  for (const status of [200, 399, 500])
    expect(() => invalid(status, 'x')).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
})
