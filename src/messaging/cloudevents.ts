// Messages as events of CloudEvents 1.0, and back: as one JSON text (structured mode), and as attributes beside the
// data (binary mode), which each broker spells in its own way. What cannot be read is told in words, never thrown.
//
// Extensions: `partitionkey` is the key, `traceparent` the trace context. Ours begin with `reprise`. An Integer of
// CloudEvents has 32 bits, so that our numbers travel as text; its `sequence` is ordered as text, and per source.

import type { Message, MessagePlace } from '../atomicity/index.js'
import { dayStartMs, isoTime, isWellFormed } from '../kernel/index.js'

/** What is no event that this version can read, and why, in a sentence. */
export interface Unreadable {
  readonly unreadable: string
}

/** The media type of an event as one JSON text. */
export const eventMediaType = 'application/cloudevents+json'

/** The attributes of a message, extensions included, by their names in CloudEvents. */
export function eventAttributes(message: Message): Readonly<Record<string, string>> {
  const { source, id, type, subject, key, place, version, atMs, intent, traceparent, schema, discarded } = message
  const given: Readonly<Record<string, string | undefined>> = {
    specversion: '1.0',
    id,
    source,
    type,
    subject,
    time: isoTime(atMs),
    datacontenttype: hasData(message) ? 'application/json' : undefined,
    dataschema: schema,
    partitionkey: key,
    traceparent,
    repriseepoch: place && String(place.epoch),
    reprisenumber: place && String(place.number),
    repriseversion: version === undefined ? undefined : String(version),
    repriseintent: intent,
    reprisediscarded: discarded,
  }
  const attributes: Record<string, string> = {}
  for (const [name, value] of Object.entries(given)) if (value !== undefined) attributes[name] = value
  return attributes
}

/** A message as one JSON text. Its data is JSON; a message that was discarded has none. */
export function eventText(message: Message): string {
  const attributes = eventAttributes(message)
  return JSON.stringify(hasData(message) ? { ...attributes, data: message.data } : attributes)
}

/** The message in a JSON text. */
export function readEvent(text: string): Message | Unreadable {
  let event: unknown
  try {
    event = JSON.parse(text)
  } catch {
    return { unreadable: 'It is not JSON.' }
  }
  if (typeof event !== 'object' || event === null || Array.isArray(event)) {
    return { unreadable: 'It is JSON, and no object.' }
  }
  const { data, ...attributes } = event as Readonly<Record<string, unknown>>
  if (attributes['data_base64'] !== undefined) return { unreadable: 'Its data is binary.' }
  return messageOf(attributes, data)
}

/**
 * The message of attributes and data, which arrived apart from each other. Data of a media type other than JSON is the
 * text as it is.
 */
export function readAttributes(
  attributes: Readonly<Record<string, unknown>>,
  data: string | undefined,
): Message | Unreadable {
  if (data === undefined || !isJson(attributes['datacontenttype'])) return messageOf(attributes, data)
  try {
    return messageOf(attributes, JSON.parse(data))
  } catch {
    return { unreadable: 'Its data is not JSON, as its media type says.' }
  }
}

/** Whether it is a message. */
export function isReadable(read: Message | Unreadable): read is Message {
  return !('unreadable' in read)
}

function hasData({ data, discarded }: Message): boolean {
  return discarded === undefined && data !== undefined
}

// Without a media type it is JSON, as CloudEvents has it.
function isJson(mediaType: unknown): boolean {
  return mediaType === undefined || /^[^;]*[/+]json\s*(;|$)/i.test(String(mediaType))
}

const leastText = ['id', 'source', 'type']
// What a store has to find again: an index holds no longer ones.
const names = ['id', 'source', 'type', 'subject', 'partitionkey']
const mostNameBytes = 700
const texts = ['subject', 'time', 'dataschema', 'partitionkey', 'traceparent', 'repriseintent', 'reprisediscarded']
const numbers = ['repriseepoch', 'reprisenumber', 'repriseversion']

function messageOf(attributes: Readonly<Record<string, unknown>>, data: unknown): Message | Unreadable {
  const wrong = whatIsWrong(attributes)
  if (wrong !== undefined) return { unreadable: wrong }
  const text = (name: string): string | undefined => (attributes[name] ?? undefined) as string | undefined
  const number = (name: string): number | undefined => (text(name) === undefined ? undefined : Number(text(name)))
  const time = text('time')
  const atMs = time === undefined ? 0 : timeMs(time)
  if (atMs === undefined) return { unreadable: 'Its time is not one of RFC 3339.' }
  const discarded = text('reprisediscarded')
  const [id, subject] = [text('id') as string, text('subject')]
  return {
    source: text('source') as string,
    id,
    type: text('type') as string,
    subject,
    // Without a key, and without a subject, it is in order with no other.
    key: text('partitionkey') ?? subject ?? id,
    place: placeOf(number('repriseepoch'), number('reprisenumber')),
    version: number('repriseversion'),
    atMs,
    intent: text('repriseintent'),
    traceparent: text('traceparent'),
    schema: text('dataschema'),
    data: discarded === undefined ? data : undefined,
    ...(discarded !== undefined && { discarded }),
  }
}

function whatIsWrong(attributes: Readonly<Record<string, unknown>>): string | undefined {
  if (attributes['specversion'] !== '1.0') return 'It is no event of CloudEvents 1.0: its specversion is another one.'
  for (const name of leastText) {
    const value = attributes[name]
    if (typeof value !== 'string' || value === '') return `Its attribute ${name} is not there, or no text.`
  }
  for (const name of texts) {
    const value = attributes[name] ?? undefined
    if (value !== undefined && typeof value !== 'string') return `Its attribute ${name} is no text.`
    if (value === '' && name !== 'reprisediscarded') return `Its attribute ${name} is empty.`
  }
  for (const name of names) {
    const value = attributes[name]
    if (typeof value !== 'string') continue
    if (value.includes('\0') || !isWellFormed(value)) return `Its attribute ${name} is no text that can be stored.`
    if (Buffer.byteLength(value) > mostNameBytes) return `Its attribute ${name} has more than ${mostNameBytes} bytes.`
  }
  for (const name of numbers) {
    const value = attributes[name] ?? undefined
    if (value === undefined) continue
    const isNumber = typeof value === 'string' && /^\d{1,16}$/.test(value) && Number.isSafeInteger(Number(value))
    if (!isNumber) return `Its attribute ${name} is not a whole number, as text.`
  }
  const [epoch, number] = [attributes['repriseepoch'] ?? undefined, attributes['reprisenumber'] ?? undefined]
  return (epoch === undefined) === (number === undefined) ? undefined : 'It has half of a place: an epoch or a number.'
}

function placeOf(epoch: number | undefined, number: number | undefined): MessagePlace | undefined {
  return epoch === undefined || number === undefined ? undefined : { epoch, number }
}

const rfc3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,30}))?(?:[Zz]|([+-])(\d\d):(\d\d))$/

// The time of RFC 3339 in ms since 1970. Fractions of a millisecond are cut off, and a leap second is the next one.
function timeMs(text: string): number | undefined {
  const [matched, year, month, day, hour, minute, second, fraction = '', sign, offsetHour = 0, offsetMinute = 0] =
    rfc3339.exec(text) ?? []
  if (matched === undefined) return undefined
  const startMs = dayStartMs(Number(year), Number(month) - 1, Number(day))
  const inRange = Number(hour) < 24 && Number(minute) < 60 && Number(second) <= 60
  if (startMs === undefined || !inRange || Number(offsetHour) > 23 || Number(offsetMinute) > 59) return undefined
  const offsetMs = (Number(offsetHour) * 60 + Number(offsetMinute)) * 60_000 * (sign === '-' ? -1 : 1)
  const ofDayMs = ((Number(hour) * 60 + Number(minute)) * 60 + Number(second)) * 1_000
  return startMs + ofDayMs + Number(fraction.padEnd(3, '0').slice(0, 3)) - offsetMs
}
