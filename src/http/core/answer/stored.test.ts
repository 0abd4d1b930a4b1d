import fc from 'fast-check'
import { expect, it } from 'vitest'
import { property } from '../../../../test/property.js'
import {
  answerCodec,
  codecForBoth,
  earlierAnswerCodecs,
  fieldsToReplay,
  replayedFields,
  restore,
  store,
} from './stored.js'

const context = { id: 'sha256:x', operation: 'charges' } as never

property('comes back byte by byte', [fc.uint8Array({ maxLength: 200 }), fc.boolean()], async (bytes, isText) => {
  const body = isText ? Buffer.from(Buffer.from(bytes).toString()) : Buffer.from(bytes)
  const answer = { status: 200, headers: [['etag', '"\u00ff"']] as const, body }
  const text = await answerCodec.encode(store(answer, fieldsToReplay([]), 1_000), context)
  // A text of PostgreSQL holds no NUL.
  expect(text).not.toContain('\0')
  const { text: same, ...restored } = restore(await answerCodec.decode(text, context))
  expect(restored).toEqual(answer)
  // Where it is told as text too, that is the same text.
  if (same !== undefined) expect(Buffer.from(same)).toEqual(body)
})

it('keeps a body of text as it is, behind the rest', async () => {
  const headers = [['content-type', 'application/json']] as const
  const text = '{"note":"a \\"quoted\\" word"}\n{1'
  const stored = await answerCodec.encode({ status: 201, headers, text }, context)
  expect(stored).toBe(`62{"status":201,"headers":[["content-type","application/json"]]}${text}`)
  for (const answer of [
    { status: 201, headers, text },
    { status: 200, headers: [], text: '' },
    { status: 200, headers: [], base64: 'AA==' },
    { status: 413, headers: [['location', '/a']] as const, tombstone: true as const },
  ]) {
    expect(await answerCodec.decode(await answerCodec.encode(answer, context), context)).toEqual(answer)
  }
})

it('reads what the versions before have stored', async () => {
  const before = '{"status":201,"headers":[["etag","\\"1\\""]],"text":"{\\"paid\\":1}"}'
  const [first] = earlierAnswerCodecs
  expect([first?.name, answerCodec.name]).toEqual(['http-answer-1', 'http-answer-2'])
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
  expect(store(answer, fieldsToReplay(['X-Own']), 10).headers.map(([name]) => name)).toEqual([
    'location',
    'etag',
    'x-own',
  ])
  const gone = { status: 201, headers: [['location', '/a']], tombstone: true }
  expect(store(answer, fieldsToReplay([]), 9)).toEqual(gone)
  expect(store({ ...answer, body: (async function* () {})() }, fieldsToReplay([]), 9)).toEqual(gone)
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
  const answer = { status: 402, headers: [], text: 'no' }
  const both = codecForBoth(answerCodec)
  const text = await both.encode({ code: 'answer', data: answer } as never, context)
  expect(text).toBe(answerCodec.encode(answer, context))
  expect(await both.decode(text, context)).toEqual({ ...answer, code: 'answer', data: answer })
  expect(codecForBoth(7 as never)).toBe(7)
})
