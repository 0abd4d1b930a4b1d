// An answer whose body is at hand leaves in one write to its socket: status line, fields and body. Counted where Node
// hands bytes to the system. And nothing of a body is decoded on the way: neither the one that arrived, unless the
// handler asks for it, nor the one that leaves.

import type { Socket } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { type Answer, reply } from '../../../src/http/core/index.js'
import { eventLoopTurn } from '../../../src/kernel/index.js'
import { adapterNames } from '../subject/subject.js'
import { exchange, requestText } from './raw.js'
import { openStage, type Stage } from './stage.js'

const bodies: Readonly<Record<string, () => Answer>> = {
  JSON: () => reply(201, { id: 7, note: 'paid' }),
  'text that is not ASCII': () => reply(201, 'für 7 €'),
  bytes: () => reply(201, Uint8Array.of(0, 255, 7)),
  'text of 200 kB': () => reply(201, 'x'.repeat(200_000)),
  nothing: () => reply(201),
  '204': () => reply(204),
}

const stages: Stage[] = []
afterEach(async () => {
  for (const stage of stages.splice(0)) await stage.close()
})

// The ways from a socket into the system. What a library of C++ does with one of them is one attempt to write.
const ways = ['writev', 'writeBuffer', 'writeUtf8String', 'writeAsciiString', 'writeLatin1String', 'writeUcs2String']

function countWrites({ server }: Stage): string[] {
  const writes: string[] = []
  server.on('connection', (socket: Socket) => {
    const { _handle: handle } = socket as unknown as {
      readonly _handle: Record<string, (...args: unknown[]) => unknown>
    }
    for (const way of ways) {
      const write = handle[way] as (...args: unknown[]) => unknown
      handle[way] = (...args) => {
        writes.push(way)
        return write.apply(handle, args)
      }
    }
  })
  return writes
}

describe.each(adapterNames)('on %s', (adapter) => {
  it.each(Object.keys(bodies))('%s leaves in one write: first call, replay, and without a key', async (name) => {
    const stage = await openStage(adapter, { handler: bodies[name] as () => Answer, options: { required: false } })
    stages.push(stage)
    const writes = countWrites(stage)
    const seen: unknown[] = []
    for (const [how, fields] of [
      ['first', ['Idempotency-Key: k-1']],
      ['replay', ['Idempotency-Key: k-1']],
      ['no key', []],
      ['refused', ['Idempotency-Key: "']],
    ] as const) {
      writes.length = 0
      const text = requestText('POST', '/api/things/7', ['Content-Type: application/json', ...fields], '{"amount":7}')
      const { status, head } = await exchange(stage.url, text)
      const replayed = head.some((line) => /^idempotent-replayed: true/i.test(line))
      seen.push([how, status, replayed, writes.length])
    }
    const { status } = (bodies[name] as () => Answer)()
    expect(seen).toEqual([
      ['first', status, false, 1],
      ['replay', status, true, 1],
      ['no key', status, false, 1],
      ['refused', 400, false, 1],
    ])
  })

  it('no body is parsed, of a first call, a replay or without a key', async () => {
    const stage = await openStage(adapter, {
      handler: () => reply(201, '{"sent":"back"}', { 'content-type': 'application/json' }),
      options: { required: false },
    })
    stages.push(stage)
    const parse = vi.spyOn(JSON, 'parse')
    try {
      for (const fields of [['Idempotency-Key: k-1'], ['Idempotency-Key: k-1'], []]) {
        const text = requestText('POST', '/api/things/7', ['Content-Type: application/json', ...fields], '{"amount":7}')
        expect((await exchange(stage.url, text)).rest).toContain('{"sent":"back"}')
      }
      const parsed = parse.mock.calls.map(([text]) => String(text))
      // What is read of the stored answer is its status and fields.
      expect(parsed.filter((text) => text.startsWith('{"status":201'))).toHaveLength(1)
      expect(parsed.filter((text) => text.includes('sent') || text.includes('amount'))).toEqual([])
    } finally {
      parse.mockRestore()
    }
  })
})

it('a body that is not at hand takes several writes, and they are counted', async () => {
  const parts = async function* () {
    yield Buffer.from('one')
    // Node puts together what is written in one turn.
    await eventLoopTurn()
    yield Buffer.from('two')
  }
  const stage = await openStage('node', { handler: () => reply(201, parts()), options: { largestAnswer: 1 } })
  stages.push(stage)
  const writes = countWrites(stage)
  const answer = await exchange(stage.url, requestText('POST', '/api/things/7', ['Idempotency-Key: k-1'], '{}'))
  expect(answer.status).toBe(201)
  expect(writes.length).toBeGreaterThan(1)
})
