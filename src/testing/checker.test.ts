import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../test/property.js'
import {
  type CallVerdict,
  type CheckedRun,
  checkEffects,
  type FindingKind,
  type IntentRecord,
  type LedgerEffect,
} from './checker.js'

const kinds = (run: CheckedRun): string[] => checkEffects(run).findings.map(({ kind, intent }) => `${kind} ${intent}`)

const keyed = (verdicts: CallVerdict[], more: Partial<IntentRecord> = {}): IntentRecord => ({
  id: 'a',
  key: 'k',
  verdicts,
  ...more,
})
const plain = (verdicts: CallVerdict[]): IntentRecord => ({ id: 'a', verdicts })
const times = (count: number, more: Partial<LedgerEffect> = {}): LedgerEffect[] =>
  Array.from({ length: count }, () => ({ intent: 'a', ...more }))

describe('what callers were told against what the ledger counted', () => {
  // verdicts of the calls → what is found with 0, 1 and 2 effects
  const rows: [IntentRecord, string, string, string][] = [
    [keyed(['committed']), 'lost a', '', 'duplicate a'],
    [keyed(['aborted']), '', 'phantom a', 'phantom a'],
    [keyed(['unknown']), '', '', 'duplicate a'],
    [keyed([]), '', '', 'duplicate a'],
    [keyed(['unknown', 'committed']), 'lost a', '', 'duplicate a'],
    [keyed(['unknown', 'aborted']), '', 'phantom a', 'phantom a'],
    [keyed(['aborted', 'unknown']), '', '', 'duplicate a'],
    [keyed(['aborted', 'committed']), 'lost a', '', 'duplicate a'],
    [keyed(['committed', 'aborted']), 'lost a', '', 'duplicate a'],
    [keyed(['committed', 'committed']), 'lost a', '', 'duplicate a'],
    [plain(['committed']), 'lost a', '', 'duplicate a'],
    [plain(['aborted']), '', 'phantom a', 'phantom a'],
    [plain(['unknown', 'aborted']), '', '', 'duplicate a'],
    [plain(['unknown', 'committed']), 'lost a', '', ''],
    [plain(['committed', 'committed']), 'lost a', 'lost a', ''],
    [plain([]), '', '', 'duplicate a'],
  ]
  it.each(rows)('%j', (intent, ...expected) => {
    const found = [0, 1, 2].map((count) => kinds({ intents: [intent], effects: times(count) }).join())
    expect(found).toEqual(expected)
  })

  it('an effect that nobody wanted is unexpected', () => {
    expect(kinds({ intents: [], effects: times(1) })).toEqual(['unexpected a'])
  })

  it('parts that do not appear together are torn, also a part nobody declared', () => {
    const parts = ['marker', 'row']
    const both = [...times(1, { part: 'marker' }), ...times(1, { part: 'row' })]
    expect(kinds({ intents: [keyed(['committed'])], effects: both, parts })).toEqual([])
    expect(kinds({ intents: [keyed(['committed'])], effects: both.slice(1), parts })).toEqual(['torn a'])
    expect(kinds({ intents: [keyed(['unknown'])], effects: both.slice(0, 1), parts })).toEqual(['torn a'])
    expect(kinds({ intents: [keyed(['unknown'])], effects: times(2, { part: 'row' }), parts })).toEqual([
      'torn a',
      'duplicate a',
    ])
    expect(kinds({ intents: [keyed(['aborted'])], effects: both.slice(0, 1), parts })).toEqual(['torn a', 'phantom a'])
    expect(kinds({ intents: [keyed(['committed'])], effects: times(1, { part: 'other' }) })).toEqual(['torn a'])
  })

  it('results under one key must agree with each other and with the ledger; without a key they may differ', () => {
    const results = ['1', '1']
    const effects = times(1, { result: '1' })
    expect(kinds({ intents: [keyed(['committed', 'committed'], { results })], effects })).toEqual([])
    expect(kinds({ intents: [keyed(['committed'], { results: ['1', '2'] })], effects })).toEqual(['wrong-result a'])
    expect(kinds({ intents: [keyed(['committed'], { results: ['2'] })], effects })).toEqual(['wrong-result a'])
    const twice = { ...plain(['committed', 'committed']), results: ['1', '2'] }
    expect(kinds({ intents: [twice], effects: times(2) })).toEqual([])
  })

  it('an unknown outcome is excused until everything has healed', () => {
    for (const verdicts of [['unknown'], ['committed', 'unknown'], []] as CallVerdict[][]) {
      const run = { intents: [keyed(verdicts)], effects: times(1) }
      expect(kinds(run)).toEqual([])
      expect(kinds({ ...run, healed: true })).toEqual(['stuck a'])
    }
    expect(kinds({ intents: [keyed(['unknown', 'committed'])], effects: times(1), healed: true })).toEqual([])
  })

  it('counts what the run met, and refuses an intent named twice', () => {
    const intents = [keyed(['unknown', 'committed']), { ...keyed(['aborted']), id: 'b' }, { ...keyed([]), id: 'c' }]
    const { endedAs, unknownCalls } = checkEffects({ intents, effects: times(1) })
    expect(endedAs).toEqual({ committed: 1, aborted: 1, unknown: 1 })
    expect(unknownCalls).toBe(1)
    expect(() => checkEffects({ intents: [keyed([]), keyed([])], effects: [] })).toThrow('twice')
  })
})

describe('drawn runs', () => {
  const verdict = fc.constantFrom<CallVerdict[]>(
    ['committed'],
    ['aborted'],
    ['unknown'],
    ['unknown', 'committed'],
    ['unknown', 'aborted'],
    ['aborted', 'committed'],
    [],
  )
  const sound = fc.array(fc.tuple(verdict, fc.boolean()), { minLength: 1, maxLength: 12 }).map((drawn) => {
    const intents = drawn.map(([verdicts], index) => ({
      id: `i${index}`,
      key: `k${index}`,
      verdicts,
      results: verdicts.includes('committed') ? ['r'] : [],
    }))
    const happened = ({ verdicts }: { verdicts: CallVerdict[] }, coin: boolean): boolean =>
      verdicts.includes('committed') || (verdicts.at(-1) !== 'aborted' && coin)
    const effects = intents.flatMap((intent, index) =>
      happened(intent, drawn[index]?.[1] ?? false)
        ? [
            { intent: intent.id, part: 'marker' },
            { intent: intent.id, part: 'row', result: 'r' },
          ]
        : [],
    )
    return { intents, effects, parts: ['marker', 'row'] }
  })

  property(
    'a sound run has no finding, in whatever order the ledger tells',
    [sound, fc.infiniteStream(fc.nat())],
    (run, order) => {
      const shuffled = run.effects
        .map((effect) => ({ effect, place: order.next().value as number }))
        .sort((a, b) => a.place - b.place)
      expect(kinds({ ...run, effects: shuffled.map(({ effect }) => effect) })).toEqual([])
    },
  )

  type Run = { intents: (IntentRecord & { results: string[] })[]; effects: LedgerEffect[]; parts: string[] }
  // Each plants one fault at one intent, and says which; undefined where the intent does not allow it.
  const plants: Record<FindingKind, (run: Run, id: string) => Run | undefined> = {
    lost: (run, id) => committed(run, id) && { ...run, effects: run.effects.filter(({ intent }) => intent !== id) },
    duplicate: (run, id) =>
      there(run, id) && { ...run, effects: [...run.effects, ...run.effects.filter(({ intent }) => intent === id)] },
    phantom: (run, id) =>
      there(run, id) && !committed(run, id)
        ? { ...run, intents: run.intents.map((one) => (one.id === id ? { ...one, verdicts: ['aborted'] } : one)) }
        : undefined,
    unexpected: (run, id) => there(run, id) && { ...run, intents: run.intents.filter((one) => one.id !== id) },
    torn: (run, id) =>
      there(run, id) && {
        ...run,
        effects: run.effects.filter(({ intent, part }) => intent !== id || part !== 'marker'),
      },
    'wrong-result': (run, id) =>
      there(run, id) && {
        ...run,
        intents: run.intents.map((one) => (one.id === id ? { ...one, results: ['other'] } : one)),
      },
    stuck: () => undefined,
  }
  const there = (run: Run, id: string): true | undefined => run.effects.some(({ intent }) => intent === id) || undefined
  const committed = (run: Run, id: string): true | undefined =>
    run.intents.some((one) => one.id === id && one.verdicts.includes('committed')) || undefined

  for (const [kind, plant] of Object.entries(plants).filter(([name]) => name !== 'stuck')) {
    let planted = 0
    property(
      `a planted ${kind} is found, at its intent and nowhere else`,
      [sound, fc.nat({ max: 11 })],
      (run, place) => {
        const id = `i${place % run.intents.length}`
        const spoiled = plant(run, id)
        if (spoiled === undefined) return
        planted += 1
        expect(kinds(spoiled)).toEqual([`${kind} ${id}`])
      },
      { cases: 2_000 },
    )
    it(`${kind} was planted often enough to mean something`, () => expect(planted).toBeGreaterThan(200))
  }
})
