import { describe, expect, it } from 'vitest'
import { deadlineAfter, RepriseError } from '../../kernel/index.js'
import { type Heard, hear, ProofIntent } from './calls.js'
import { perform } from './in-process.js'
import { judge, reportOf } from './report.js'
import { closeWorld } from './subject.js'

describe('what a call was told', () => {
  it('is its result, members in any order', async () => {
    const one = await hear(() => ({ a: 1, b: [2n] }))
    expect(one).toEqual({ verdict: 'committed', result: '{ a: 1, b: [ 2n ] }' })
    expect(await hear(async () => ({ b: [2n], a: 1 }))).toEqual(one)
  })

  it('is the status of a response: an answer, a refusal, or nothing to go by', async () => {
    const verdictOf = async (status: number) => (await hear(() => new Response('x', { status }))).verdict
    for (const status of [200, 201, 303]) expect(await verdictOf(status)).toBe('committed')
    for (const status of [400, 404, 422]) expect(await verdictOf(status)).toBe('aborted')
    for (const status of [408, 409, 425, 429, 500, 503]) expect(await verdictOf(status)).toBe('unknown')
  })

  it('is nothing where it threw, and held where a person has to settle it', async () => {
    const threw = (error: unknown) => hear(() => Promise.reject(error))
    expect(await threw(new Error('cut'))).toEqual({ verdict: 'unknown', says: 'cut', held: false })
    expect(await threw(undefined)).toMatchObject({ verdict: 'unknown', says: 'undefined' })
    expect(await threw(new RepriseError('OPERATION_UNKNOWN', 'held'))).toMatchObject({ held: true })
  })
})

describe('an intent', () => {
  const answering = (...answers: Heard[]) =>
    new ProofIntent(
      'one',
      async () => answers.shift() ?? { verdict: 'unknown', says: 'no more' },
      deadlineAfter('200ms'),
    )

  it('is called until it is answered, and no more', async () => {
    const intent = answering({ verdict: 'unknown' }, { verdict: 'unknown' }, { verdict: 'committed', result: 'x' })
    await intent.untilAnswered()
    expect(intent.heard).toHaveLength(3)
    await intent.untilAnswered()
    expect(intent.heard).toHaveLength(3)
  })

  it('is not called again where a repeat changes nothing, and not for ever', async () => {
    const held = answering({ verdict: 'unknown', held: true })
    await held.untilAnswered()
    expect(held.heard).toHaveLength(1)
    expect(judge('s', held, 1, true, true)).toMatchObject({ line: { held: true, effects: 1 }, findings: [] })
    expect(judge('s', held, 2, true, true).findings).toMatchObject([{ kind: 'duplicate' }])
    const mute = answering()
    await mute.untilAnswered()
    const { findings, line } = judge('s', mute, 0, true, true)
    expect(findings).toMatchObject([{ kind: 'stuck', says: expect.stringContaining('no more') }])
    expect(reportOf({ seed: 1, rounds: 0, duplicates: 5 }, [line], findings).text).toMatch(
      /^1 schedules, \d+ calls, 0 effects, 1 finding, seed 1\ns: .*stuck$/,
    )
  })

  it('is unknown where it is not answered in time', async () => {
    const intent = new ProofIntent('one', () => new Promise(() => undefined), deadlineAfter('20ms'))
    expect(await intent.call()).toEqual({ verdict: 'unknown', says: 'no answer in time' })
  })

  it('is not cut where there is no proxy, and a world without a way to close is left', async () => {
    const cut = { kind: 'cut', name: 'cut', statement: 1, moment: 'late' } as const
    expect(await perform(cut, answering({ verdict: 'committed', result: 'x' }))).toBe(false)
    await closeWorld(undefined)
    await closeWorld({})
  })
})
