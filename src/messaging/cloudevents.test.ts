import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../test/property.js'
import type { Message } from '../atomicity/index.js'
import { isWellFormed } from '../kernel/index.js'
import { eventAttributes, eventText, isReadable, readAttributes, readEvent } from './cloudevents.js'

const text = fc
  .string({ minLength: 1, maxLength: 40, unit: 'binary' })
  .filter((value) => isWellFormed(value) && !value.includes('\0'))
const maybe = <Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> =>
  fc.option(value, { nil: undefined })
const whole = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER })
// As JSON has it: without -0.
const data = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as unknown)

const messages: fc.Arbitrary<Message> = fc
  .record({
    source: text,
    id: text,
    type: text,
    subject: maybe(text),
    key: text,
    place: maybe(fc.record({ epoch: whole, number: whole })),
    version: maybe(whole),
    atMs: fc.integer({ min: -62_167_219_200_000, max: 253_402_300_799_999 }),
    intent: maybe(text),
    traceparent: maybe(text),
    schema: maybe(text),
    data: maybe(data),
    discarded: maybe(fc.oneof(text, fc.constant(''))),
  })
  .map(({ discarded, ...message }) => (discarded === undefined ? message : { ...message, data: undefined, discarded }))

const cases = { cases: 2_000 }

const first = {
  specversion: '1.0',
  id: '1',
  source: '/shop',
  type: 'order.placed',
}

describe('an event as one text', () => {
  property(
    'is the message again',
    [messages],
    (message) => {
      expect(readEvent(eventText(message))).toEqual(message)
    },
    cases,
  )

  property(
    'is read or refused in words, whatever it is',
    [fc.oneof(fc.string(), fc.json())],
    (given) => {
      const read = readEvent(given)
      if (!isReadable(read)) expect(read.unreadable).toMatch(/^[A-Z].*\.$/)
    },
    cases,
  )

  property(
    'is read or refused in words with any values',
    [
      fc.dictionary(
        fc.constantFrom(...Object.keys(eventAttributes(fullMessage())), 'data', 'data_base64'),
        fc.jsonValue(),
      ),
    ],
    (given) => {
      const read = readEvent(JSON.stringify({ ...first, ...given }))
      if (isReadable(read)) expect(read.key).toBeTypeOf('string')
      else expect(read.unreadable).toMatch(/^[A-Z].*\.$/)
    },
    cases,
  )

  it.each([
    ['{', 'It is not JSON.'],
    ['[]', 'It is JSON, and no object.'],
    [{ ...first, specversion: '0.3' }, /specversion/],
    [{ ...first, id: undefined }, /attribute id is not there/],
    [{ ...first, id: 7 }, /attribute id/],
    [{ ...first, subject: 7 }, /attribute subject is no text/],
    [{ ...first, partitionkey: '' }, /attribute partitionkey is empty/],
    [{ ...first, time: 'yesterday' }, /RFC 3339/],
    [{ ...first, time: '2026-02-30T10:00:00Z' }, /RFC 3339/],
    [{ ...first, time: '2026-02-28T24:00:00Z' }, /RFC 3339/],
    [{ ...first, repriseepoch: 3, reprisenumber: '1' }, /repriseepoch is not a whole number/],
    [{ ...first, repriseepoch: '99999999999999999', reprisenumber: '1' }, /repriseepoch is not a whole number/],
    [{ ...first, repriseepoch: '3' }, /half of a place/],
    [{ ...first, data_base64: 'AAAA' }, /binary/],
  ])('%j is unreadable', (given, why) => {
    const read = readEvent(typeof given === 'string' ? given : JSON.stringify(given))
    expect(read).toEqual({ unreadable: typeof why === 'string' ? why : expect.stringMatching(why) })
  })

  it('of somebody else has the subject as its key, or else its id', () => {
    expect(readEvent(JSON.stringify({ ...first, subject: 'order/1' }))).toMatchObject({
      key: 'order/1',
      place: undefined,
    })
    expect(readEvent(JSON.stringify(first))).toMatchObject({ key: '1', atMs: 0, data: undefined })
  })

  it('has a time with any offset', () => {
    const at = (time: string) => (readEvent(JSON.stringify({ ...first, time })) as Message).atMs
    expect(at('2026-11-17T10:00:00.1234Z')).toBe(Date.UTC(2026, 10, 17, 10, 0, 0, 123))
    expect(at('2026-11-17T12:00:00+02:00')).toBe(Date.UTC(2026, 10, 17, 10))
    expect(at('2026-11-17t08:30:00-01:30')).toBe(Date.UTC(2026, 10, 17, 10))
  })
})

describe('an event as attributes', () => {
  property(
    'is the message again',
    [messages],
    (message) => {
      const attributes = eventAttributes(message)
      const given = message.data === undefined ? undefined : JSON.stringify(message.data)
      expect(readAttributes(attributes, given)).toEqual(message)
    },
    cases,
  )

  property(
    'has names that CloudEvents allows',
    [messages],
    (message) => {
      for (const name of Object.keys(eventAttributes(message))) expect(name).toMatch(/^[a-z0-9]{1,20}$/)
    },
    cases,
  )

  it('of another media type has text as its data', () => {
    expect(readAttributes({ ...first, datacontenttype: 'text/plain' }, '{')).toMatchObject({ data: '{' })
    expect(readAttributes({ ...first, datacontenttype: 'application/problem+json; charset=utf-8' }, '1')).toMatchObject(
      { data: 1 },
    )
    expect(readAttributes(first, '{')).toEqual({ unreadable: expect.stringContaining('not JSON') })
  })
})

// A message with every attribute.
function fullMessage(): Message {
  return {
    source: '/shop',
    id: '1',
    type: 'order.placed',
    subject: 'order/1',
    key: 'order/1',
    place: { epoch: 1, number: 1 },
    version: 1,
    atMs: 0,
    intent: 'intent',
    traceparent: 'trace',
    schema: 'schema',
    data: {},
    discarded: 'by hand',
  }
}
