// Many schedules of relays that crash, stall and lose answers: nothing is lost, each key is in order, an outage burns no
// attempts, and only what is wrong is parked. Bugs that are planted into the rules are found.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../property.js'
import { type Parts, RelayModel, soundParts } from './relay-model.js'

const seen: Record<string, number> = {}

describe('relays that share an outbox', () => {
  property(
    'keep their promises, whatever fails',
    [fc.nat()],
    (seed) => {
      const model = new RelayModel(seed).run(150)
      for (const [what, times] of Object.entries(model.seen)) seen[what] = (seen[what] ?? 0) + times
      expect(model.violations).toEqual([])
    },
    { cases: 1_000 },
  )

  it('met everything that may happen to them', () => {
    console.log(JSON.stringify(seen))
    expect(Object.entries(seen).filter(([, times]) => times < 100)).toEqual([])
  })
})

const { afterPublish, begunAlone, companyOf, nextCall, sortedLanes } = soundParts

/** Bugs that a relay or its store may have. */
const bugs: Readonly<Record<string, Partial<Parts>>> = {
  'marks before it publishes': { marks: 'before' },
  'completes without a look at the attempt': { fenced: () => true },
  'claims what somebody else has': { isFree: () => true },
  'counts an outage as a refusal': {
    afterPublish: (work, rules, context) => {
      const answers = work.answers.map((answer) =>
        answer.is === 'unsent' || answer.is === 'unknown'
          ? ({ is: 'refused', code: 'away', reason: 'away' } as const)
          : answer,
      )
      return afterPublish({ ...work, answers }, rules, context)
    },
  },
  'counts every unknown answer against its message': {
    afterPublish: (work, rules, context) => afterPublish(work, rules, { ...context, othersConfirmed: true }),
  },
  'takes an unknown answer for a confirmation': {
    afterPublish: (work, rules, context) => {
      const answers = work.answers.map((answer) => (answer.is === 'unknown' ? ({ is: 'confirmed' } as const) : answer))
      return afterPublish({ ...work, answers }, rules, context)
    },
  },
  'slides past a message that failed': {
    afterPublish: (work, rules, context) => {
      const step = afterPublish(work, rules, context)
      const isStuck = step.next.is === 'rest' && work.lane.messages.length > 1
      return isStuck ? { ...step, done: work.lane.messages[0]?.place, next: { is: 'free' } } : step
    },
  },
  'publishes a key at once where the broker keeps no order': {
    nextCall: (works, _order, awayInRow) => nextCall(works, 'key', awayInRow),
  },
  'repeats an unknown batch as a batch': {
    companyOf: (lane, rules) => {
      const company = companyOf(lane, rules)
      return company === 'single' ? 'together' : company
    },
  },
  'blames all that a process had when it ended': {
    sortedLanes: (lanes, rules, atMs) => {
      const blamed = lanes.map((lane) =>
        lane.claims > 1 ? { ...lane, history: begunAlone(lane.history, atMs) } : lane,
      )
      return sortedLanes(blamed, rules, atMs)
    },
  },
  'forgets that a message ended a process': { begunAlone: (history) => history },
  'takes no notice of processes that ended': { companyOf: () => 'together' },
  'never gives a refused message up': {
    afterPublish: (work, rules, context) =>
      afterPublish(work, { ...rules, attempts: Number.POSITIVE_INFINITY }, context),
  },
  'forgets failures when a claim ends': {
    afterPublish: (work, rules, context) => {
      const step = afterPublish(work, rules, context)
      return step.next.is === 'rest' ? { ...step, next: { ...step.next, failures: 0, history: '' } } : step
    },
  },
}

describe('planted bugs', () => {
  it.each(Object.keys(bugs))('a relay that %s is found', (bug) => {
    const parts = { ...soundParts, ...bugs[bug] }
    const found = Array.from({ length: 200 }, (_, seed) => new RelayModel(seed, parts).run(150).violations.length)
    expect(found.filter((violations) => violations > 0).length).toBeGreaterThan(0)
  })
})
