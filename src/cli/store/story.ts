// The story of one intent in words: what the tables say happened, in order of time, what they cannot say, and what to
// do next. Pure.

import { type AuditEntry, isForgotten, type StoredMessage, type StoredRecord } from '../../atomicity/index.js'
import type { MessageTrace, ReaderTrace } from '../../messaging/index.js'
import { printable } from '../io.js'
import { age, moment } from './output.js'

/** A message that the intent caused, and where it is. */
export interface TracedMessage extends MessageTrace {
  readonly message: StoredMessage
}

/** What the tables hold. */
export interface Facts {
  readonly id: string
  readonly nowMs: number
  readonly record: StoredRecord | undefined
  readonly notes: readonly AuditEntry[]
  readonly messages: readonly TracedMessage[]
}

/** Something that happened. */
interface StoryEvent {
  /** When, in ms since 1970; undefined: nobody keeps the time, and it stands behind what it followed. */
  readonly atMs: number | undefined
  readonly what: string
}

/** What is told. */
export interface Story {
  readonly events: readonly StoryEvent[]
  /** What the tables cannot say, each in a sentence. */
  readonly notKnown: readonly string[]
  /** What to do, each in a sentence. */
  readonly next: readonly string[]
}

/** The story of what the tables hold. */
export function storyOf(facts: Facts): Story {
  const dated = [...recordEvents(facts), ...facts.notes.map(noteEvent), ...facts.messages.flatMap(messageEvents)]
  const events = dated
    .map((event, place) => ({ event, place }))
    .sort((one, other) => one.event.sortMs - other.event.sortMs || one.place - other.place)
    .map(({ event: { atMs, what } }) => ({ atMs, what }))
  return { events, notKnown: gaps(facts), next: [...adviceOnRecord(facts), ...facts.messages.flatMap(adviceOnMessage)] }
}

interface Placed extends StoryEvent {
  readonly sortMs: number
}

const at = (atMs: number, what: string): Placed => ({ atMs, what, sortMs: atMs })

function recordEvents({ record }: Facts): readonly Placed[] {
  if (record === undefined) return []
  const { operation = 'a transaction with a key', mode, claims, looks, state, because } = record
  const events = [at(record.firstClaimedAtMs, `claimed for ${printable(operation)} (${mode})`)]
  if (claims > 1) events.push(at(record.claimedAtMs, `claimed again: claim ${claims} of the key`))
  const why = because === undefined ? '' : `, because: ${printable(because)}`
  if (record.completedAtMs !== undefined) {
    const kept = record.value === undefined ? 'without a value' : `${record.value.length} characters are kept`
    events.push(at(record.completedAtMs, `${state}${why}; ${kept}`))
  } else if (state === 'unknown') {
    const looked =
      looks === 0 ? 'no sweep has looked yet' : `a sweep has looked ${looks === 1 ? 'once' : `${looks} times`}`
    events.push({ atMs: undefined, sortMs: record.claimedAtMs, what: `its outcome became unknown${why}; ${looked}` })
  }
  return events
}

function noteEvent({ atMs, action, actor, from, to, reason }: AuditEntry): Placed {
  return at(atMs, `${action} by ${printable(actor)}: ${from} -> ${to}: ${printable(reason)}`)
}

function messageEvents({ message, readers, letters }: TracedMessage): readonly Placed[] {
  const name = nameOf(message)
  const { epoch, number } = message.place
  const events = [at(message.atMs, `emitted ${name}, epoch ${epoch}, number ${number}`)]
  for (const { reader, kind, state, handledAtMs } of readers) {
    const who = `${kind} ${printable(reader)}`
    if (handledAtMs !== undefined) events.push(at(handledAtMs, `${who} processed ${name}`))
    else events.push({ atMs: undefined, sortMs: message.atMs, what: `${who}: ${inWords[state]} ${name}` })
  }
  for (const { reader, code, reason, state, note, firstAtMs, lastAtMs } of letters) {
    events.push(at(firstAtMs, `dead letter of ${printable(reader)}: ${printable(code)}: ${printable(reason)}`))
    if (note !== undefined) events.push(at(lastAtMs, `the letter is ${state}: ${printable(note)}`))
  }
  return events
}

const inWords: Readonly<Record<ReaderTrace['state'], string>> = {
  done: 'is past',
  waiting: 'has before it',
  parked: 'is parked, and holds',
  untold: 'has not seen',
}

function nameOf({ id, type, key }: StoredMessage): string {
  return `${printable(type)} ${printable(id)} (key ${printable(key)})`
}

function gaps({ record, messages }: Facts): readonly string[] {
  const said = ['Attempts that were rolled back, and answers that were replayed, leave nothing in the tables.']
  if (record === undefined || record.mode === 'atomic') {
    said.push('An atomic operation that runs at this moment cannot be seen before it commits.')
  }
  if (record?.mode === 'leased') {
    said.push(
      'What the effect did outside of the store is known there alone; claims between the first and the last are counted, not dated.',
    )
  }
  if (messages.length === 0) {
    said.push(
      'Messages that every reader has done are purged, after a day by default: none here does not mean that none was emitted.',
    )
  } else if (messages.some(({ readers }) => readers.some(({ kind }) => kind === 'relay'))) {
    said.push('When a relay published is not kept, and what consumers behind a broker did is known in their stores.')
  }
  return said
}

function adviceOnRecord({ id, record, nowMs }: Facts): readonly string[] {
  if (record === undefined) {
    return [
      'There is no record: the key was never used under this scope, was released, or was forgotten after its window. A repeat is carried out.',
    ]
  }
  const { state, mode, dueAtMs, expiresAtMs } = record
  if (state === 'succeeded' || state === 'failed') {
    if (isForgotten(record, nowMs)) return ['Its window is over: a repeat is carried out anew.']
    const until = expiresAtMs === undefined ? 'for ever' : `until ${moment(expiresAtMs)}, ${age(expiresAtMs, nowMs)}`
    return [`Nothing about the key: a repeat gets the stored outcome ${until}.`]
  }
  const settle = `reprise settle --id ${id} --as succeeded (or failed, or released) --reason TEXT`
  if (state === 'claimed' && mode === 'atomic') {
    return [`It was committed without an outcome: look for its effect, then ${settle}.`]
  }
  if (state === 'claimed') {
    if (dueAtMs !== undefined && dueAtMs > nowMs) {
      return [
        `It is in flight: its owner has until ${moment(dueAtMs)}, ${age(dueAtMs, nowMs)}. Wait; a repeat waits too, or is refused.`,
      ]
    }
    return [
      'Its owner is gone, and nobody has looked: db.upkeep in the service, or reprise sweep --module FILE, or a repeat of the call.',
    ]
  }
  if (dueAtMs === undefined) return [`It waits for a person: find out whether it happened, then ${settle}.`]
  const when =
    dueAtMs > nowMs ? `looks at it ${age(dueAtMs, nowMs)}.` : 'should have looked at it by now: does one run?'
  return [`It may or may not have happened. A sweep ${when} To decide it yourself: find out, then ${settle}.`]
}

function adviceOnMessage({ message, readers, letters }: TracedMessage): readonly string[] {
  const decide = letters
    .filter(({ state }) => state === 'open')
    .map(({ reader, code }) => {
      const which = `--reader ${printable(reader)} --id ${printable(message.id)} --source ${printable(message.source)}`
      return `Repair ${printable(code)}, then reprise redrive ${which} --reason TEXT; or reprise discard with the same options.`
    })
  const isLetterOf = (name: string): boolean =>
    letters.some(({ reader, state }) => reader === name && state !== 'closed')
  const held = readers
    .filter(({ reader, state }) => state === 'parked' && !isLetterOf(reader))
    .map(
      ({ reader }) =>
        `${nameOf(message)} waits behind a dead letter: reprise dead-letters --reader ${printable(reader)} --key ${printable(message.key)}.`,
    )
  const waiting = readers
    .filter(({ state }) => state === 'waiting' || state === 'untold')
    .map(
      ({ reader, kind }) =>
        `${nameOf(message)} is before ${kind} ${printable(reader)}: does it run? reprise outbox shows how far it is.`,
    )
  return [...decide, ...held, ...waiting]
}
