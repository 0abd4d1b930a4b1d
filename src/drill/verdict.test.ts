import { describe, expect, it } from 'vitest'
import { RepriseError } from '../kernel/index.js'
import { type SeenRepeat, verdictOn } from './verdict.js'

const call = { kind: 'operation', domain: 'shop', name: 'pay', input: 'secret' } as const
const same: SeenRepeat = { reached: false, ended: { told: 'paid' }, effects: undefined }
const on = (seen: Partial<SeenRepeat>) => verdictOn({ call, first: 'paid' }, { ...same, ...seen })
const threw = (code: ConstructorParameters<typeof RepriseError>[0]) => ({ error: new RepriseError(code, '') })

describe('a repeat', () => {
  it('agrees where it was told the same, and the count of effects is 0 or 1 and stays', () => {
    expect(on({})).toEqual({ is: 'agreed' })
    for (const number of [0, 1]) expect(on({ effects: { before: number, after: number } })).toEqual({ is: 'agreed' })
  })

  it.each([
    ['DRILL_EXECUTED', { reached: true, ended: { error: new Error('stopped') } }],
    ['DRILL_EXECUTED', { reached: true, effects: { before: 1, after: 2 } }],
    ['DRILL_EFFECTS', { effects: { before: 1, after: 2 } }],
    ['DRILL_EFFECTS', { effects: { before: 2, after: 2 } }],
    ['DRILL_REFUSED', { ended: { refused: '401' } }],
    ['DRILL_REFUSED', { ended: threw('OPERATION_MISMATCH') }],
    ['DRILL_REFUSED', { ended: threw('OUTCOME_UNREADABLE') }],
    ['DRILL_REFUSED', { ended: threw('MESSAGE_MISMATCH') }],
    ['DRILL_DIFFERENT', { ended: { told: 'refused' } }],
  ] satisfies [string, Partial<SeenRepeat>][])('is %s where %j', (code, seen) => {
    const verdict = on(seen)
    expect(verdict).toMatchObject({ is: 'violation', violation: { code } })
    expect(JSON.stringify(verdict)).not.toContain('secret')
    expect(JSON.stringify(verdict)).toContain('the operation pay in the domain shop')
  })

  it.each([
    ['unanswered', threw('STORE_UNREACHABLE')],
    ['unanswered', threw('OPERATION_IN_FLIGHT')],
    ['unanswered', threw('KEY_TOO_OLD')],
    ['unanswered', { error: new TypeError('of a function of the user') }],
    ['not-kept', threw('OUTCOME_TOO_LARGE')],
  ] as const)('says nothing, %s, where %o was thrown', (because, ended) => {
    expect(on({ ended })).toMatchObject({ is: 'skipped', because, error: ended.error })
  })
})
