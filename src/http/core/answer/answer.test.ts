import { expect, it } from 'vitest'
import { type Answer, AnswerError, answerOf, discardBody, finish, isAnswered, isBodiless, reply } from './answer.js'

const code = (name: string) => expect.objectContaining({ code: name })

it.each([
  [{ a: 1 }, '{"a":1}', 'application/json; charset=utf-8'],
  [[1], '[1]', 'application/json; charset=utf-8'],
  [7, '7', 'application/json; charset=utf-8'],
  [false, 'false', 'application/json; charset=utf-8'],
  ['ü', 'ü', 'text/plain; charset=utf-8'],
  [new Uint8Array([0x61]), 'a', 'application/octet-stream'],
  [undefined, '', undefined],
  [null, '', undefined],
])('makes an answer of %j', async (body, text, type) => {
  const { headers, body: bytes } = await finish(reply(200, body), 100)
  expect(Buffer.from((bytes ?? '') as string).toString()).toBe(text)
  expect(Object.fromEntries(headers)['content-type']).toBe(type)
})

it('keeps the fields that are given, in order, several values one by one', () => {
  const { headers } = reply(200, 'x', {
    'Set-Cookie': ['a=1', 'b=2'],
    'Content-Type': 'text/html',
    'X-None': undefined,
  })
  expect(headers).toEqual([
    ['set-cookie', 'a=1'],
    ['set-cookie', 'b=2'],
    ['content-type', 'text/html'],
  ])
})

it('refuses a status or a body that is none', () => {
  for (const status of [199, 600, 200.5, Number.NaN]) expect(() => reply(status)).toThrow(code('ARGUMENT_INVALID'))
  expect(() => reply(200, () => 1)).toThrow(code('ARGUMENT_INVALID'))
})

it('takes a Response of the platform, once, and none that was read or cannot be sent', async () => {
  const headers = new Headers([
    ['set-cookie', 'a=1'],
    ['set-cookie', 'b=2'],
    ['x-a', '1'],
  ])
  const answer = answerOf(new Response('text', { status: 201, headers }))
  expect(answer.headers).toEqual([
    ['content-type', 'text/plain;charset=UTF-8'],
    ['set-cookie', 'a=1'],
    ['set-cookie', 'b=2'],
    ['x-a', '1'],
  ])
  expect(Buffer.from((await finish(answer, 10)).body as Uint8Array).toString()).toBe('text')
  const used = new Response('x')
  await used.text()
  expect(() => answerOf(used)).toThrow(code('ARGUMENT_INVALID'))
  expect(() => answerOf(Response.error())).toThrow(code('ARGUMENT_INVALID'))
  expect((await finish(answerOf(Response.redirect('http://localhost/a', 303)), 10)).status).toBe(303)
})

it('is an error that says no more than its status', () => {
  const error = new AnswerError(reply(402, 'the number of the card'), { cause: new Error('x') })
  expect([error.name, error.message, error.kept, error.problem]).toEqual([
    'AnswerError',
    'The handler ended with an answer of status 402.',
    undefined,
    undefined,
  ])
})

it('holds a stream up to the limit, and leaves the rest to whoever sends it', async () => {
  let pulled = 0
  let ended = 0
  async function* parts(): AsyncGenerator<string> {
    try {
      for (; pulled < 5; pulled++) yield 'abc'
    } finally {
      ended += 1
    }
  }
  expect(Buffer.from((await finish(reply(200, parts()), 15)).body as Uint8Array).toString()).toBe('abc'.repeat(5))
  pulled = 0
  const { body } = await finish(reply(200, parts()), 5)
  expect(pulled).toBe(1)
  let text = ''
  for await (const part of body as AsyncIterable<Uint8Array>) text += Buffer.from(part).toString()
  expect([text, ended]).toEqual(['abc'.repeat(5), 2])
})

it.each([
  ['begun', true],
  ['not begun', false],
])('lets a stream go that is not sent to its end, %s', async (_how, isBegun) => {
  let cancelled = 0
  const stream = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(10)),
    cancel: () => {
      cancelled += 1
    },
  })
  const answer = await finish(reply(200, stream), 5)
  if (isBegun) for await (const _ of answer.body as AsyncIterable<Uint8Array>) break
  else await discardBody(answer)
  expect(cancelled).toBe(1)
  await discardBody(answer)
  await discardBody({ body: new Uint8Array(1) })
})

it('sends no body where there can be none, and lets what was meant to be one go', async () => {
  let ended = false
  const stream = new ReadableStream({
    cancel: () => {
      ended = true
    },
  })
  for (const status of [204, 205, 304]) {
    expect(isBodiless(status)).toBe(true)
    expect((await finish(reply(status, 'x'), 10)).body).toBe(null)
    expect((await finish(reply(status, new Uint8Array(1)), 10)).body).toBe(null)
  }
  await finish(reply(204, stream), 10)
  expect([ended, isBodiless(200)]).toEqual([true, false])
  const locked = new ReadableStream()
  locked.getReader()
  expect((await finish({ ...reply(204), body: locked }, 10)).status).toBe(204)
})

it('takes a copy of bytes, so that what is stored and what is sent cannot differ', async () => {
  const bytes = new Uint8Array([1, 2])
  const { body } = await finish(reply(200, bytes), 10)
  bytes.fill(9)
  expect(body).toEqual(new Uint8Array([1, 2]))
})

it('stays text where it was given as text, as what is sent', async () => {
  expect((await finish(reply(200, { name: 'Zoë' }), 100)).body).toBe('{"name":"Zoë"}')
  // Half a pair of surrogates becomes U+FFFD on the wire.
  expect((await finish({ status: 200, headers: [], body: 'a\ud800' }, 100)).body).toBe('a\ufffd')
})

it('is told from what only looks like one', () => {
  const lookalike = { status: 201, headers: [], body: 'text' }
  expect(() => answerOf(lookalike)).toThrow(code('ARGUMENT_INVALID'))
  expect([isAnswered(lookalike), isAnswered(null), isAnswered('text')]).toEqual([false, false, false])
  const own = { ...reply(201, 'text'), status: 202 }
  expect([isAnswered(own), answerOf(own)]).toEqual([true, own])
  expect(isAnswered(new Response())).toBe(true)
  expect(JSON.stringify(reply(201, 'x'))).toBe(
    '{"status":201,"headers":[["content-type","text/plain; charset=utf-8"]],"body":"x"}',
  )
})

it.each([
  ['headers', { headers: ['x'] }],
  ['headers', { headers: [['x']] }],
  ['headers', { headers: [['x', 1]] }],
  ['headers', { headers: [['x', 'a', 'b']] }],
  ['headers', { headers: [null] }],
  ['headers', { headers: { x: 'a' } }],
  ['headers', { headers: undefined }],
  ['body', { body: { a: 1 } }],
  ['body', { body: [1] }],
  ['body', { body: 7 }],
  ['body', { body: undefined }],
  ['body', { body: () => 'x' }],
])('is refused where its %s was changed to what cannot be sent: %j', (_part, changed) => {
  const answer = { ...reply(200, 'x'), ...(changed as object) } as Answer
  expect(() => finish(answer, 100)).toThrow(code('ARGUMENT_INVALID'))
})
