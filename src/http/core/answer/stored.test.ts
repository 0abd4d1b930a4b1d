import fc from 'fast-check'
import { expect, it } from 'vitest'
import { property } from '../../../../test/property.js'
import {
  answerCodec,
  earlierAnswerCodecs,
  fieldsToReplay,
  fromJson,
  jsonAndBody,
  replayedFields,
  toJson,
} from './stored.js'

const context = { id: 'sha256:x', operation: 'charges' } as never
const limits = (largestAnswer: number, ...more: string[]) => ({ replayed: fieldsToReplay(more), largestAnswer })

property('comes back byte by byte', [fc.uint8Array({ maxLength: 200 }), fc.boolean()], async (bytes, isText) => {
  const body = isText ? Buffer.from(bytes).toString() : Buffer.from(bytes)
  const answer = { status: 200, headers: [['etag', '"\u00ff"']] as const, body }
  const codec = answerCodec(jsonAndBody, limits(1_000))
  const text = await codec.encode(answer, context)
  // A text of PostgreSQL holds no NUL.
  expect(text).not.toContain('\0')
  const restored = await codec.decode(text, context, 'succeeded')
  expect(Buffer.from(restored.body as string)).toEqual(Buffer.from(body as string))
  expect({ ...restored, body }).toEqual(answer)
})

it('keeps a body of text as it is, behind the rest', async () => {
  const headers = [['content-type', 'application/json']] as const
  const text = '{"note":"a \\"quoted\\" word"}\n{1'
  const stored = await jsonAndBody.encode({ status: 201, headers, text }, context)
  expect(stored).toBe(`62{"status":201,"headers":[["content-type","application/json"]]}${text}`)
  for (const answer of [
    { status: 201, headers, text },
    { status: 200, headers: [], text: '' },
    { status: 200, headers: [], base64: 'AA==' },
    { status: 413, headers: [['location', '/a']] as const, tombstone: true as const },
  ]) {
    expect(await jsonAndBody.decode(await jsonAndBody.encode(answer, context), context)).toEqual(answer)
  }
})

it('reads what the versions before have stored', async () => {
  const before = '{"status":201,"headers":[["etag","\\"1\\""]],"text":"{\\"paid\\":1}"}'
  const [first] = earlierAnswerCodecs
  expect([first?.name, jsonAndBody.name]).toEqual(['http-answer-1', 'http-answer-2'])
  expect(await first?.decode(before, context)).toEqual({ status: 201, headers: [['etag', '"1"']], text: '{"paid":1}' })
})

it('keeps the fields that may be repeated, and only where the resource is of an answer too large', () => {
  const headers = [
    ['location', '/a'],
    ['etag', '"1"'],
    ['x-own', '1'],
    ['set-cookie', 'a'],
  ] as const
  const answer = { status: 201, headers, body: new Uint8Array(10) }
  expect(toJson(answer, limits(10, 'X-Own')).headers.map(([name]) => name)).toEqual(['location', 'etag', 'x-own'])
  const gone = { status: 201, headers: [['location', '/a']], tombstone: true }
  expect(toJson(answer, limits(9))).toEqual(gone)
  expect(toJson({ ...answer, body: (async function* () {})() }, limits(9))).toEqual(gone)
  expect(replayedFields).toContain('content-encoding')
})

it.each([
  'Set-Cookie',
  'authorization',
  'www-authenticate',
  'proxy-authenticate',
  'Date',
  'connection',
  'content-length',
  'cache-control',
  'bad name',
  '',
])('never repeats the field %j', (name) => {
  expect(() => fieldsToReplay([name])).toThrow(
    expect.objectContaining({ code: 'OPERATION_INVALID', details: { option: 'replayHeaders' } }),
  )
})

it('stores a failure by the codec of answers, and leaves what is no codec to be refused', async () => {
  const json = { status: 402, headers: [], text: 'no' }
  const answer = fromJson(json)
  const codec = answerCodec(jsonAndBody, limits(100))
  const text = await codec.encode({ code: 'answer', data: answer } as never, context)
  expect(text).toBe(jsonAndBody.encode(json, context))
  expect(await codec.decode(text, context, 'failed')).toEqual({ code: 'answer', data: answer })
  expect(await codec.decode(text, context, 'succeeded')).toEqual(answer)
  // As a person gives it who settles an outcome.
  expect(await codec.encode(json as never, context)).toBe(text)
  expect(answerCodec(7 as never, limits(100))).toBe(7)
})

it('ends the stream of an answer that nobody gets, returned or thrown', async () => {
  const codec = answerCodec(jsonAndBody, limits(100))
  let ended = 0
  const cancel = () => {
    ended += 1
  }
  const answer = () => ({ status: 200, headers: [], body: new ReadableStream<Uint8Array>({ cancel }) })
  codec.discard?.(answer())
  codec.discard?.({ code: 'answer', data: answer() } as never)
  await expect.poll(() => ended).toBe(2)
})
