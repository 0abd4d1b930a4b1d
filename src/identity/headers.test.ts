import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../test/property.js'
import { retryAfterReadMs, retryAfterShapes } from '../../test/retry/retry-after.js'
import { deadlineAfter, maxDurationMs } from '../kernel/index.js'
import {
  attemptHeader,
  deadlineHeader,
  type HeaderCodec,
  keyHeader,
  replayedHeader,
  retryAfterHeader,
  retryOwnerHeader,
} from './headers.js'
import { mintKey } from './key.js'

const codecs = [attemptHeader, deadlineHeader, replayedHeader, retryOwnerHeader] as HeaderCodec<unknown>[]

describe('our own headers', () => {
  it('have the names of the wire', () => {
    expect([keyHeader, retryAfterHeader, ...codecs].map(({ name }) => name)).toEqual([
      'Idempotency-Key',
      'Retry-After',
      'Reprise-Attempt',
      'Reprise-Deadline-Ms',
      'Idempotent-Replayed',
      'Reprise-Retry-Owner',
    ])
  })

  it('are read', () => {
    expect(attemptHeader.read('2')).toBe(2)
    expect(attemptHeader.read(['2'])).toBe(2)
    expect(deadlineHeader.read(' 1500 ')).toBe(1_500)
    expect(deadlineHeader.read('0')).toBe(0)
    expect(replayedHeader.read('true')).toBe(true)
    expect(retryOwnerHeader.read('caller')).toBe('caller')
    const key = mintKey()
    expect(keyHeader.read(keyHeader.write(key))).toBe(key)
  })

  it('are written, refusing what they cannot carry', () => {
    expect(attemptHeader.write(3)).toBe('3')
    expect(replayedHeader.write(true)).toBe('true')
    expect(retryOwnerHeader.write('caller')).toBe('caller')
    for (const bad of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 1e15]) {
      expect(() => attemptHeader.write(bad)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
    }
    expect(() => deadlineHeader.write(-1)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
  })

  it('round a deadline down and a wait up', () => {
    expect(deadlineHeader.write(1_499.9)).toBe('1499')
    expect(retryAfterHeader.write(1)).toBe('1')
    expect(retryAfterHeader.write(1_000)).toBe('1')
    expect(retryAfterHeader.write(1_001)).toBe('2')
    expect(retryAfterHeader.write(0)).toBe('0')
  })

  const malformed = [
    undefined,
    null,
    '',
    [],
    ['1', '2'],
    '0x2',
    '1e3',
    '-1',
    '+1',
    '1.5',
    '2, 3',
    'TRUE',
    'Caller',
    '９',
    '1'.repeat(16),
  ]
  it.each(malformed)('ignore the malformed value %#', (field) => {
    for (const codec of codecs) expect(codec.read(field)).toBeUndefined()
  })

  it('ignore the attempt 0, since the first is 1, and a deadline that is no duration', () => {
    expect(attemptHeader.read('0')).toBeUndefined()
    expect(deadlineHeader.read('999999999999999')).toBeUndefined()
    expect(deadlineAfter(deadlineHeader.read(String(maxDurationMs)) ?? -1)).toBeDefined()
  })

  property('never throw, whatever arrives', [fc.oneof(fc.string({ unit: 'binary' }), fc.anything())], (field) => {
    for (const codec of codecs) codec.read(field as string)
    retryAfterHeader.read(field as string, 0)
  })

  property('carry whole numbers there and back', [fc.integer({ min: 1, max: maxDurationMs })], (number) => {
    expect(attemptHeader.read(attemptHeader.write(number))).toBe(number)
    expect(deadlineHeader.read(deadlineHeader.write(number))).toBe(number)
  })
})

describe('Retry-After', () => {
  it.each([Number.NaN, undefined, Number.POSITIVE_INFINITY])('wants the time to compare with, not %s', (nowMs) => {
    expect(() => retryAfterHeader.read('1', nowMs as number)).toThrow(
      expect.objectContaining({ code: 'ARGUMENT_INVALID' }),
    )
  })

  const shapes: readonly (readonly [field: string | readonly string[] | undefined, delayMs: number | undefined])[] = [
    ...retryAfterShapes,
    [undefined, undefined],
    [['1', '2'], undefined],
    ['9'.repeat(400), Number.POSITIVE_INFINITY],
  ]
  it.each(shapes)('%s', (field, delayMs) => {
    expect(retryAfterHeader.read(field, retryAfterReadMs)).toBe(delayMs)
  })
})
