import { expect, it } from 'vitest'
import type { WorkerAnswer } from '../worker-process.js'
import { type CalledEffect, judge } from './judge.js'

const done = (receipt: string, replayed = false): WorkerAnswer => ({ final: `succeeded:${receipt}`, replayed })
const refused: WorkerAnswer = { final: 'failed:refused:', replayed: false }

type Call = readonly [told: WorkerAnswer | undefined, content?: string, late?: boolean]

function kinds(mode: 'atomic' | 'leased', calls: readonly Call[], effects: readonly Partial<CalledEffect>[]): string[] {
  const judged = calls.map(([told, content = 'one', late = false], index) => {
    return { id: `call-${index}`, content, late, told }
  })
  const found = effects.map((effect) => ({ intent: 'i', call: 'call-0', result: 'r', ...effect }))
  return judge([{ id: 'i', key: 'k', mode, calls: judged }], found).map(({ kind }) => kind)
}

const both = (effect: Partial<CalledEffect> = {}) => [
  { ...effect, part: 'debit' },
  { ...effect, part: 'credit' },
]

it('finds nothing where all is told as it is', () => {
  expect(kinds('atomic', [[undefined], [done('r')], [done('r', true), 'one', true]], both())).toEqual([])
  expect(kinds('atomic', [[{ error: 'UNKNOWN_OUTCOME' }], [done('r', true)]], both())).toEqual([])
  expect(kinds('atomic', [[refused]], [])).toEqual([])
  expect(kinds('leased', [[{ error: 'OPERATION_UNKNOWN' }], [done('r~2')]], [{}])).toEqual([])
})

it.each<[kind: string, mode: 'atomic' | 'leased', calls: readonly Call[], effects: readonly Partial<CalledEffect>[]]>([
  ['lost', 'atomic', [[done('r')]], []],
  ['duplicate', 'atomic', [[done('r')]], [...both(), ...both()]],
  ['torn', 'atomic', [[done('r')]], both().slice(0, 1)],
  ['phantom', 'atomic', [[refused]], both()],
  ['phantom', 'atomic', [[{ error: 'LOCK_TIMEOUT' }], [done('r', true)]], both()],
  ['phantom', 'leased', [[{ error: 'OPERATION_IN_FLIGHT' }], [done('r')]], [{}]],
  ['phantom', 'atomic', [[done('r')]], both({ call: 'nobody’s' })],
  ['wrongResult', 'atomic', [[done('r')], [done('another', true)]], both()],
  ['wrongResult', 'atomic', [[done('r')], [done('r', true), 'other']], both()],
  ['wrongResult', 'leased', [[refused], [done('r')]], []],
  ['zombie', 'leased', [[done('r~1')], [done('r~2')]], [{}]],
  ['forgotten', 'atomic', [[done('r')], [done('r'), 'one', true]], both()],
  ['stuck', 'atomic', [[undefined], [{ error: 'STORE_UNREACHABLE' }]], []],
])('finds what is %s', (kind, mode, calls, effects) => {
  expect(kinds(mode, calls, effects)).toContain(kind)
})

it('finds an effect that nobody wanted', () => {
  expect(judge([], [{ intent: 'nobody’s', call: 'c', result: 'r' }]).map(({ kind }) => kind)).toEqual(['phantom'])
})
