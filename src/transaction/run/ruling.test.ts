import { expect, it } from 'vitest'
import { EngineError, scripted } from '../../../test/transaction/scripted-engine.js'
import { rulingOf } from '../../atomicity/index.js'
import { RepriseError } from '../../kernel/index.js'
import { BodyFailed, CommitTimedOut, ruleOn, Swallowed } from './ruling.js'
import { settingsReader } from './settings.js'

const engine = scripted()
const settings = settingsReader(engine.manifest, {})({})
const inBody = { phase: 'body' as const, poisoned: undefined, claimed: false }
const committing = { ...inBody, phase: 'committing' as const }

it('takes a body’s own error for the caller’s, and keeps the connection unless a statement may be under way', () => {
  const own = new Error('of the body')
  expect(ruleOn(engine, settings, { ...inBody, thrown: new BodyFailed(own), error: own })).toMatchObject({
    ruling: { outcome: 'aborted', help: 'permanent', connection: 'keep' },
    shown: own,
  })
  const late = new RepriseError('BODY_TIME_LIMIT', 'too long')
  expect(ruleOn(engine, settings, { ...inBody, thrown: new BodyFailed(late), error: late }).ruling).toEqual({
    ...rulingOf('surface', 'body-cut-off'),
    connection: 'discard',
  })
})

it('lets the first error of the engine decide, whatever the body made of it', () => {
  const first = new EngineError('repeat')
  const other = new Error('in its place')
  const poisoned = { ...inBody, poisoned: { error: first } }
  expect(ruleOn(engine, settings, { ...poisoned, thrown: new BodyFailed(other), error: other })).toMatchObject({
    ruling: { help: 'transient' },
    shown: other,
  })
  const swallowed = new Swallowed(first)
  expect(ruleOn(engine, settings, { ...inBody, thrown: swallowed, error: swallowed }).ruling.help).toBe('transient')
})

it('resolves a COMMIT that was not answered in time, unless nothing was to be written', () => {
  const late = new CommitTimedOut(5)
  expect(ruleOn(engine, settings, { ...committing, thrown: late, error: late })).toMatchObject({
    ruling: { outcome: 'unknown', sign: 'commit-timeout' },
    shown: { code: 'COMMIT_TIMEOUT' },
  })
  const reading = settingsReader(engine.manifest, {})({ readOnly: true })
  expect(ruleOn(engine, reading, { ...committing, thrown: late, error: late }).ruling).toMatchObject({
    outcome: 'aborted',
    help: 'transient',
  })
})
