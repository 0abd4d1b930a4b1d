import { expect, it } from 'vitest'
import type { WorkerAnswer } from '../worker-process.js'
import type { OnTheWire } from './broker.js'
import { type HandledRow, type JudgedRound, judge } from './judge.js'

const done = (ids: string, replayed = false): WorkerAnswer => ({ final: ids, replayed })
const refused: WorkerAnswer = { final: 'refused', replayed: false }

type Call = readonly [told: WorkerAnswer | undefined, late?: boolean, calledAt?: number, toldAt?: number]

function intent(id: string, messages: readonly number[], calls: readonly Call[], keyed = true) {
  const judged = calls.map(([told, late = false, calledAt = 1, toldAt = 2]) => ({ told, late, calledAt, toldAt }))
  return { id, keyed, messages, calls: judged }
}

const row = (given: Partial<HandledRow>): HandledRow => ({
  ...{ reader: 'direct', key: 'k', position: 0, id: 'i.0', intent: 'i', n: 0, run: 'r', epoch: 1, number: 1 },
  ...given,
})
const both = (given: Partial<HandledRow> = {}): readonly HandledRow[] => [
  row(given),
  row({ ...given, reader: 'delivered' }),
]
const sent = ({ id, key, epoch, number, intent: of, n, run }: HandledRow): OnTheWire => {
  return { id, key, epoch, number, data: { intent: of, n, run, round: 1, way: 'plain' } }
}

interface Given extends Partial<Omit<JudgedRound, 'wire'>> {
  /** Default: what one consumer has handled. */
  readonly wire?: readonly OnTheWire[]
}

function kinds(given: Given): readonly string[] {
  const handled = given.handled ?? both()
  const round: JudgedRound = {
    intents: [intent('i', [0], [[done('i.0')]])],
    emitted: [{ intent: 'i', run: 'r' }],
    left: undefined,
    before: new Map(),
    ...given,
    handled,
    wire: given.wire ?? handled.filter(({ reader }) => reader === 'direct').map(sent),
  }
  return judge(round).map(({ kind }) => kind)
}

const second: Partial<HandledRow> = { intent: 'j', id: 'j.0', position: 1, number: 2 }
const twoIntents = (first: readonly Call[], then: readonly Call[]) => ({
  intents: [intent('i', [0], first), intent('j', [0], then)],
  emitted: ['i', 'j'].map((of) => ({ intent: of, run: 'r' })),
})

it('finds nothing where all is as it was told', () => {
  expect(kinds({})).toEqual([])
  expect(kinds({ wire: [sent(row({})), sent(row({}))] })).toEqual([])
  expect(kinds({ intents: [intent('i', [0], [[undefined], [done('i.0', true), true]])] })).toEqual([])
  expect(kinds({ intents: [intent('i', [0], [[{ error: 'UNKNOWN_OUTCOME' }]], false)] })).toEqual([])
  expect(kinds({ intents: [intent('i', [0], [[refused]])], emitted: [], handled: [] })).toEqual([])
  expect(kinds({ ...twoIntents([[done('i.0')]], [[done('j.0')]]), handled: [...both(), ...both(second)] })).toEqual([])
  expect(kinds({ handled: both({ epoch: 9 }), before: new Map() })).toEqual([])
})

it.each<[kind: string, what: string, given: Given]>([
  ['lost', 'a commit that is not there', { emitted: [], handled: [] }],
  ['lost', 'a message that no consumer has handled', { handled: [row({})] }],
  ['stuck', 'the same, while something is left', { handled: [row({})], left: 'one' }],
  ['lost', 'a message that was never published', { wire: [] }],
  ['duplicate', 'two effects of a message', { handled: [...both(), row({ position: 1 })] }],
  ['duplicate', 'two effects of an intent', { emitted: ['r', 'r'].map((run) => ({ intent: 'i', run })) }],
  ['phantom', 'an intent that was refused', { intents: [intent('i', [0], [[refused]])] }],
  ['phantom', 'one that failed', { intents: [intent('i', [0], [[{ error: 'LOCK_TIMEOUT' }]], false)] }],
  ['phantom', 'a message of a savepoint that was rolled back', { intents: [intent('i', [], [[done('i.0')]])] }],
  ['phantom', 'an intent of nobody', { intents: [] }],
  ['torn', 'messages without their effect', { intents: [intent('i', [0], [[undefined]], false)], emitted: [] }],
  ['torn', 'messages of another run', { emitted: [{ intent: 'i', run: 'another' }] }],
  ['wrongResult', 'two answers', { intents: [intent('i', [0], [[done('i.0')], [done('other', true)]])] }],
  ['wrongResult', 'another id', { intents: [intent('i', [0], [[done('other')]])] }],
  ['forgotten', 'an intent that ran anew', { intents: [intent('i', [0], [[done('i.0')], [done('i.0'), true]])] }],
  ['stuck', 'an intent without an end', { intents: [intent('i', [0], [[{ error: 'STORE_UNREACHABLE' }]])] }],
  ['outOfOrder', 'a gap', { handled: both({ number: 2 }) }],
  ['outOfOrder', 'an epoch that is over', { before: new Map([['direct k', { position: -1, epoch: 2, number: 1 }]]) }],
  [
    'outOfOrder',
    'what was handled the other way round',
    {
      ...twoIntents([[done('i.0')]], [[done('j.0')]]),
      handled: [...both({ position: 1 }), ...both({ ...second, position: 0 })],
    },
  ],
  [
    'outOfOrder',
    'what was published the other way round',
    {
      ...twoIntents([[done('i.0')]], [[done('j.0')]]),
      ...{ handled: [...both(), ...both(second)], wire: [row(second), row({})].map(sent) },
    },
  ],
  [
    'outOfOrder',
    'what was called for after a later one was told',
    {
      ...twoIntents([[done('i.0'), false, 10, 11]], [[done('j.0'), false, 1, 2]]),
      handled: [...both(), ...both(second)],
    },
  ],
  [
    'zombie',
    'two at the same time',
    {
      ...twoIntents([[done('i.0')]], [[done('j.0')]]),
      handled: [...both(), ...both({ ...second, position: 0 })],
    },
  ],
])('finds what is %s: %s', (kind, _what, given) => {
  expect(kinds(given)).toContain(kind)
})
