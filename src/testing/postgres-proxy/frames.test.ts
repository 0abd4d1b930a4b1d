import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../../test/property.js'
import { type Frame, FrameReader, maxFrameBytes, startupCode, startupCodes, zeroEnded } from './frames.js'

function frame(type: string, content: Uint8Array): Buffer {
  const bytes = Buffer.alloc(type.length + 4 + content.length)
  bytes.write(type, 'latin1')
  bytes.writeInt32BE(4 + content.length, type.length)
  bytes.set(content, type.length + 4)
  return bytes
}

function readAll(reader: FrameReader, chunks: readonly Buffer[]): Frame[] {
  const frames: Frame[] = []
  for (const chunk of chunks) {
    reader.push(chunk)
    for (let next = reader.next(); next !== undefined; next = reader.next()) frames.push(next)
  }
  return frames
}

/** Cuts bytes at the given places. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const ends = [...places.map((place) => place % (bytes.length + 1)), bytes.length].sort((a, b) => a - b)
  return ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end))
}

const message = fc.tuple(fc.constantFrom('Q', 'P', 'C', 'Z'), fc.uint8Array({ maxLength: 20 }))

property(
  'frames are the same, whatever the chunks',
  [
    fc.array(message, { maxLength: 8 }),
    fc.uint8Array({ minLength: 4, maxLength: 9 }),
    fc.array(fc.nat(), { maxLength: 12 }),
  ],
  (messages, first, places) => {
    const whole = [frame('', first), ...messages.map(([type, content]) => frame(type, content))]
    const reader = new FrameReader('startup')
    const [opening, ...rest] = cut(Buffer.concat(whole), places).flatMap((chunk) => {
      reader.push(chunk)
      const frames: Frame[] = []
      for (let next = reader.next(); next !== undefined; next = reader.next()) {
        frames.push(next)
        reader.mode = 'frames'
      }
      return frames
    })
    expect(opening).toEqual({ type: '', bytes: whole[0] })
    expect(rest).toEqual(messages.map(([type], index) => ({ type, bytes: whole[index + 1] })))
  },
  { cases: 2_000 },
)

describe('the reader of frames', () => {
  it('knows the requests in place of a version', () => {
    const request = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])
    const [found] = readAll(new FrameReader('startup'), [request])
    expect(found && startupCode(found)).toBe(startupCodes.ssl)
  })

  it('reads one byte, or whatever comes', () => {
    expect(readAll(new FrameReader('byte'), [Buffer.from('N')])).toEqual([{ type: 'N', bytes: Buffer.from('N') }])
    expect(readAll(new FrameReader('raw'), [Buffer.from([1]), Buffer.from([2, 3])])).toHaveLength(2)
  })

  it.each([
    ['too short', Buffer.from([81, 0, 0, 0, 3])],
    ['negative', Buffer.from([81, 255, 255, 255, 255])],
    ['too long', Buffer.from([81, 127, 255, 255, 255])],
  ])('refuses a length that is %s', (_, bytes) => {
    expect(() => readAll(new FrameReader('frames'), [bytes])).toThrow('not messages')
  })

  it('refuses a first message without a version, and takes frames up to its limit', () => {
    expect(() => readAll(new FrameReader('startup'), [Buffer.from([0, 0, 0, 7, 1, 1, 1])])).toThrow('not messages')
    const head = Buffer.from([81, 0, 0, 0, 0])
    head.writeInt32BE(maxFrameBytes, 1)
    expect(readAll(new FrameReader('frames'), [head])).toEqual([])
  })

  it('reads texts up to their zero byte, or to the end', () => {
    const bytes = Buffer.from('one\0zwölf\0rest')
    const one = zeroEnded(bytes, 0)
    expect([one.text, zeroEnded(bytes, one.next).text]).toEqual(['one', 'zwölf'])
    expect(zeroEnded(bytes, bytes.length - 4)).toEqual({ text: 'rest', next: bytes.length + 1 })
  })
})
