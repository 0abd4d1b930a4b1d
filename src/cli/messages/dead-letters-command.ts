// `reprise dead-letters`: which messages could not be delivered or handled, grouped by their cause; or one of them.

import { deadLetters, type ListedLetter, type ShownLetter } from '../../messaging/index.js'
import { type Io, printable } from '../io.js'
import { type Command, type GivenOptions, UsageError } from '../option-table.js'
import { type CommandStore, commandLimits, storeOptions, withStore } from '../store/open-store.js'
import { age, jsonOption, moment, writeAnswer } from '../store/output.js'
import { storeNowMs } from '../store/which-record.js'
import { isOneLetter, letterNamed, letterOptions, lettersNamed } from './which-letter.js'

const states = ['open', 'redriving', 'discarding', 'closed'] as const
const call = { deadline: '30s' } as const

/** The command `reprise dead-letters`. */
export const deadLettersCommand: Command = {
  summary: 'messages that could not be delivered or handled, by cause',
  about: `reprise dead-letters --url URL [options]

Shows how many dead letters have the same reader and cause, then the letters, oldest first; or one of them with
the history of its attempts. The data of a message is shown only with --data: it may be private.
A letter that parks holds the later messages of its key, until it is redriven, edited or discarded.

  reprise dead-letters --url sqlite:data/app.db
  reprise dead-letters --url sqlite:data/app.db --reader receipts --id 0198c0de-… --data
`,
  options: [
    storeOptions,
    letterOptions,
    {
      title: 'Options',
      options: [
        {
          name: 'state',
          kind: 'choice',
          choices: states,
          text: 'only letters in this state (those that are not closed)',
        },
        { name: 'limit', kind: 'number', text: 'list at most this many, 1 to 1000 (50)' },
        { name: 'data', kind: 'flag', text: 'with --id: show the data of the message; it may be private' },
        jsonOption,
      ],
    },
  ],
  exitCodes: '0 shown, 1 it failed, 2 used wrongly, 3 there is no such letter.',
  run: runDeadLetters,
}

async function runDeadLetters(given: GivenOptions, io: Io): Promise<void> {
  const isOne = isOneLetter(given)
  if (given.has('data') && !isOne) throw new UsageError('--data goes with --id: the data of one letter')
  for (const name of ['state', 'limit']) {
    if (isOne && given.has(name)) throw new UsageError(`--${name} is for lists, --id for one letter`)
  }
  await withStore(given, io, (store) => (isOne ? showOne(store, given, io) : list(store, given, io)))
}

async function showOne(store: CommandStore, given: GivenOptions, io: Io): Promise<void> {
  const which = await letterNamed(store, given)
  const letter = which && (await deadLetters(store).show({ ...which, data: given.has('data') }, call))
  writeAnswer(given, io, {
    json: { letter: letter ?? null },
    text: letter === undefined ? 'there is no such letter\n' : letterText(letter),
  })
  if (letter === undefined) io.exit(3)
}

const line = (name: string, value: unknown): string => `${name.padEnd(15)} ${printable(value)}\n`

const noData = {
  'not-asked': 'characters; --data shows them',
  erased: 'characters, whose key is gone: the data was erased',
  unreadable: 'characters, written by a codec that the command line does not have',
} as const

function letterText(letter: ShownLetter): string {
  const { place, decided, history, data, dataLength, withheld, ...facts } = letter
  const members = Object.entries(facts)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) =>
      name.endsWith('AtMs') || name === 'atMs'
        ? line(name.replace(/AtMs$/, 'At').replace(/^atMs$/, 'emittedAt'), moment(value as number))
        : line(name, value),
    )
  const attempts = Array.isArray(history) ? history : [history]
  return [
    ...members,
    line('place', `epoch ${place.epoch}, number ${place.number}`),
    ...attempts.map((attempt) => line('attempt', typeof attempt === 'string' ? attempt : JSON.stringify(attempt))),
    ...(decided === undefined ? [] : [line('decided', `${decided.decision} by ${decided.actor}: ${decided.reason}`)]),
    withheld === undefined ? line('data', JSON.stringify(data)) : line('data', `${dataLength} ${noData[withheld]}`),
    letter.state === 'open' ? 'Decide: reprise redrive, reprise redrive --edit FILE, or reprise discard.\n' : '',
  ].join('')
}

async function list(store: CommandStore, given: GivenOptions, io: Io): Promise<void> {
  const letters = deadLetters(store)
  const limit = given.number('limit') ?? 50
  const wanted = lettersNamed(given)
  const state = given.text('state') as ListedLetter['state'] | undefined
  const found = await letters.list({ ...wanted, state, limit }, call)
  const all = await letters.groups(call)
  const groups = all.filter(
    ({ reader, code }) =>
      (wanted.reader === undefined || wanted.reader === reader) && (wanted.code === undefined || wanted.code === code),
  )
  const nowMs = await storeNowMs(store, commandLimits())
  const grouped = groups.map(
    ({ reader, code, letters: count, oldestMs }) =>
      `${count} of ${printable(reader)}: ${printable(code)}, the oldest ${age(oldestMs, nowMs)}\n`,
  )
  const lines = found.map((letter) => lineOf(letter, nowMs))
  const more = found.length === limit
  const text = [...grouped, ...lines, more ? 'there may be more: --limit\n' : ''].join('')
  writeAnswer(given, io, {
    json: { groups, letters: found, more },
    text: found.length === 0 && grouped.length === 0 ? 'no dead letters\n' : text,
  })
}

function lineOf({ reader, id, state, code, type, key, lastAtMs }: ListedLetter, nowMs: number): string {
  const words = [printable(id), state.padEnd(10), printable(reader), printable(code), printable(type)]
  return `${words.join('  ')}  key ${printable(key)}  ${age(lastAtMs, nowMs)}\n`
}
