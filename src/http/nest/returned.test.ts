import 'reflect-metadata'
import { ServerResponse } from 'node:http'
import { BadRequestException, HttpException, ServiceUnavailableException, StreamableFile } from '@nestjs/common'
import { expect, it } from 'vitest'
import { type Answer, reply } from '../core/index.js'
import { answerFrom, demandStorable, exceptionOf, redirectOf } from './returned.js'

const response = (headers: Record<string, string> = {}): ServerResponse => {
  const made = new ServerResponse({ method: 'POST' } as never)
  made.statusCode = 201
  for (const [name, value] of Object.entries(headers)) made.setHeader(name, value)
  return made
}

const method = (key?: string, value: unknown = true) => {
  const plain = () => undefined
  if (key !== undefined) Reflect.defineMetadata(key, value, plain)
  return plain
}

const parts = (answered: unknown) => {
  const { status, headers, body } = answered as Answer
  return [status, Object.fromEntries(headers), body]
}

it('takes answers as they are, and makes one of anything else, with the status and the type that were set', () => {
  const own = reply(204)
  expect(answerFrom(own, method(), response())).toBe(own)
  const json = 'application/json; charset=utf-8'
  expect(parts(answerFrom({ a: 1 }, method(), response()))).toEqual([201, { 'content-type': json }, '{"a":1}'])
  const typed = response({ 'content-type': 'text/csv' })
  expect(parts(answerFrom('a,b', method(), typed))).toEqual([201, { 'content-type': 'text/csv' }, 'a,b'])
  for (const nothing of [undefined, null]) expect(parts(answerFrom(nothing, method(), typed))).toEqual([201, {}, null])
})

it('takes the stream of a file with its type and disposition, unless they were set before', () => {
  const file = new StreamableFile(Buffer.from('a'), { disposition: 'inline' })
  const type = 'application/octet-stream'
  expect(parts(answerFrom(file, method(), response()))).toEqual([
    201,
    { 'content-type': type, 'content-disposition': 'inline' },
    file.getStream(),
  ])
  const set = { 'content-type': 'image/png', 'content-disposition': 'attachment' }
  expect(parts(answerFrom(file, method(), response(set)))).toEqual([201, set, file.getStream()])
})

it.each([
  [{ url: '/x' }, undefined, 302, '/x'],
  [{ url: '/x', statusCode: 303 }, {}, 303, '/x'],
  [{ url: '/x', statusCode: 303 }, { url: '/y' }, 303, '/y'],
  [{ url: '/x', statusCode: 303 }, { statusCode: 301 }, 301, '/x'],
  [{ url: '' }, { url: '/a b\r\nc?d=%20ü' }, 302, '/a%20b%0D%0Ac?d=%20%C3%BC'],
])('redirects as %j says, and %j that was returned', (said, returned, status, location) => {
  expect(parts(answerFrom(returned, method('__redirect__', said), response()))).toEqual([status, { location }, null])
})

it('takes no redirect for one that has no address', () => {
  expect(redirectOf(method('__redirect__', { statusCode: 303 }))).toBeUndefined()
  expect(redirectOf(method())).toBeUndefined()
})

it.each([
  ['@Render', '__renderTemplate__'],
  ['@Sse', '__sse__'],
])('refuses a method with %s', (option, key) => {
  const refused = expect.objectContaining({ code: 'OPERATION_INVALID', details: { option } })
  expect(() => demandStorable(method(key), undefined)).toThrow(refused)
  expect(demandStorable(method(), undefined)).toBeUndefined()
})

it('makes an answer of an HttpException below 500 alone', () => {
  const [status, , body] = parts(exceptionOf(new BadRequestException('odd')))
  expect([status, JSON.parse(String(body))]).toEqual([400, { statusCode: 400, message: 'odd', error: 'Bad Request' }])
  expect(parts(exceptionOf(new HttpException('gone', 410)))[2]).toBe('{"statusCode":410,"message":"gone"}')
  for (const error of [new ServiceUnavailableException(), new Error('any'), undefined, 'text']) {
    expect(exceptionOf(error)).toBeUndefined()
  }
})
