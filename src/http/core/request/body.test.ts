import { PassThrough, Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { eventLoopTurn } from '../../../kernel/index.js'
import { type BodySource, limited, readFetchBody, readNodeBody } from './body.js'

const source = <Stream extends Readable>(stream: Stream, more: Partial<BodySource> = {}) =>
  Object.assign(stream, { headers: {}, ...more })
const code = (name: string) => expect.objectContaining({ code: name })

it('reads a stream up to its limit, and what a parser kept', async () => {
  const parts = () => source(Readable.from([Buffer.from('ab'), Buffer.from('c')]))
  expect(Buffer.from(await readNodeBody(parts(), 3)).toString()).toBe('abc')
  await expect(readNodeBody(parts(), 2)).rejects.toEqual(code('BODY_TOO_LARGE'))
  expect((await readNodeBody(source(Readable.from([])), 3)).length).toBe(0)
  const used = source(Readable.from([Buffer.from('x')]), { rawBody: Buffer.from('raw') })
  expect(Buffer.from(await readNodeBody(used, 3)).toString()).toBe('raw')
  expect(Buffer.from(await readNodeBody(source(Readable.from([]), { rawBody: 'raw' }), 3)).toString()).toBe('raw')
  await expect(readNodeBody(used, 2)).rejects.toEqual(code('BODY_TOO_LARGE'))
})

it('refuses by what is announced, before anything is read, and lets the rest of a stream flow away', async () => {
  const announced = source(new PassThrough(), { headers: { 'content-length': '4' } })
  await expect(readNodeBody(announced, 3)).rejects.toEqual(code('BODY_TOO_LARGE'))
  expect(announced.readableDidRead).toBe(false)
  const flowing = source(new PassThrough())
  const reading = readNodeBody(flowing, 3)
  flowing.write('abcd')
  await expect(reading).rejects.toEqual(code('BODY_TOO_LARGE'))
  expect([flowing.destroyed, flowing.readableFlowing]).toEqual([false, true])
})

it('says that a body was read by somebody else, or cut', async () => {
  const read = source(Readable.from([Buffer.from('x')]))
  for await (const _ of read);
  await expect(readNodeBody(read, 3)).rejects.toEqual(code('BODY_CONSUMED'))
  const gone = source(new PassThrough())
  gone.destroy()
  await expect(readNodeBody(gone, 3)).rejects.toEqual(code('BODY_CUT'))
  for (const why of [undefined, new Error('reset')]) {
    const cut = source(new PassThrough())
    const reading = readNodeBody(cut, 3)
    cut.write('a')
    cut.destroy(why)
    await expect(reading).rejects.toMatchObject(
      why === undefined ? { code: 'BODY_CUT' } : { code: 'BODY_CUT', cause: why },
    )
    expect(cut.listenerCount('data')).toBe(0)
  }
})

it('reads a Request of the platform', async () => {
  const request = (body: string | ReadableStream | null) =>
    new Request('http://localhost/', { method: 'POST', body, duplex: 'half' } as RequestInit)
  expect(Buffer.from(await readFetchBody(request('abc'), 3)).toString()).toBe('abc')
  expect((await readFetchBody(request(null), 3)).length).toBe(0)
  await expect(readFetchBody(request('abcd'), 3)).rejects.toEqual(code('BODY_TOO_LARGE'))
  const used = request('x')
  await used.text()
  await expect(readFetchBody(used, 3)).rejects.toEqual(code('BODY_CONSUMED'))
  const broken = new ReadableStream({ pull: (controller) => controller.error(new Error('reset')) })
  await expect(readFetchBody(request(broken), 3)).rejects.toEqual(code('BODY_CUT'))
})

it.each([
  ['that hangs', false],
  ['that never ends', true],
])('stops to read a body %s when the signal of its Request aborts', async (_name, isEndless) => {
  const controller = new AbortController()
  const reason = new Error('gone')
  const seen: { parts: number; cancelled?: unknown } = { parts: 0 }
  const body = new ReadableStream({
    async pull(stream) {
      if (!isEndless && seen.parts > 0) return new Promise<void>(() => {})
      // Time passes between its parts.
      await eventLoopTurn()
      seen.parts += 1
      stream.enqueue(new Uint8Array(1))
    },
    cancel: (why) => {
      seen.cancelled = why
    },
  })
  const init = { method: 'POST', body, duplex: 'half', signal: controller.signal } as RequestInit
  const request = new Request('http://localhost/', init)
  const read = readFetchBody(request, 1e6)
  await expect.poll(() => seen.parts).toBeGreaterThan(0)
  controller.abort(reason)
  await expect(read).rejects.toMatchObject({ code: 'BODY_CUT', cause: reason })
  const { parts, cancelled } = seen
  expect(cancelled).toBe(reason)
  for (let turn = 0; turn < 20; turn++) await eventLoopTurn()
  expect(seen.parts).toBeLessThanOrEqual(parts + 1)
  await expect(readFetchBody(new Request('http://localhost/', { ...init, body: 'x' }), 9)).rejects.toMatchObject({
    code: 'BODY_CUT',
  })
})

it('limits bytes that somebody else has read', () => {
  expect(limited(new Uint8Array(3), 3).length).toBe(3)
  expect(() => limited(new Uint8Array(4), 3)).toThrow(code('BODY_TOO_LARGE'))
})
