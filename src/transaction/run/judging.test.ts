import { expect, it } from 'vitest'
import { EngineError, scripted } from '../../../test/transaction/scripted-engine.js'
import { rulingOf } from '../../atomicity/index.js'
import { RepriseError } from '../../kernel/index.js'
import { BodyFailed, CommitTimedOut, judge, type Standing, Swallowed } from './judging.js'
import { settingsOf } from './settings.js'

const engine = scripted()
const settings = settingsOf(engine.manifest, {}, {})
const inBody: Standing = { phase: 'body', poisoned: undefined, claimed: false }
const committing: Standing = { ...inBody, phase: 'committing' }

it('takes a body’s own error for the caller’s, and keeps the connection unless a statement may be under way', () => {
  const own = new Error('of the body')
  expect(judge(engine, settings, inBody, new BodyFailed(own), own)).toMatchObject({
    ruling: { outcome: 'aborted', help: 'permanent', connection: 'keep' },
    shown: own,
  })
  const late = new RepriseError('BODY_TIME_LIMIT', 'too long')
  expect(judge(engine, settings, inBody, new BodyFailed(late), late).ruling).toEqual({
    ...rulingOf('surface', 'body-cut-off'),
    connection: 'discard',
  })
})

it('lets the first error of the engine decide, whatever the body made of it', () => {
  const first = new EngineError('repeat')
  const other = new Error('in its place')
  const poisoned = { ...inBody, poisoned: { error: first } }
  expect(judge(engine, settings, poisoned, new BodyFailed(other), other)).toMatchObject({
    ruling: { help: 'transient' },
    shown: other,
  })
  const swallowed = new Swallowed(first)
  expect(judge(engine, settings, inBody, swallowed, swallowed).ruling.help).toBe('transient')
})

it('resolves a COMMIT that was not answered in time, unless nothing was to be written', () => {
  const late = new CommitTimedOut(5)
  expect(judge(engine, settings, committing, late, late)).toMatchObject({
    ruling: { outcome: 'unknown', sign: 'commit-timeout' },
    shown: { code: 'COMMIT_TIMEOUT' },
  })
  const reading = settingsOf(engine.manifest, {}, { readOnly: true })
  expect(judge(engine, reading, committing, late, late).ruling).toMatchObject({ outcome: 'aborted', help: 'transient' })
})
