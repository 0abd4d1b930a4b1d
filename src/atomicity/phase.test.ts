import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../test/property.js'
import { type ClassificationRow, type Phase, ruleBy, rulingOf } from './phase.js'

const row = (sign: string, words: Partial<ClassificationRow>): ClassificationRow => ({
  sign,
  name: sign,
  why: 'test',
  evidence: { triggered: 'test' },
  ...words,
})
const table = [
  row('40001', { body: 'repeat', committing: 'repeat' }),
  row('23*', { body: 'surface', committing: 'surface' }),
  row('23505', { body: 'halt' }),
  row('57P03', { connecting: 'reconnect' }),
]

describe('a classification table', () => {
  it.each<[readonly string[], Phase, string, string]>([
    [['40001'], 'body', 'aborted', 'transient'],
    [['40001'], 'committing', 'aborted', 'transient'],
    [['23503'], 'body', 'aborted', 'permanent'],
    [['57P03'], 'connecting', 'aborted', 'transient'],
    [['57P03'], 'waiting', 'aborted', 'transient'],
    [['57P03'], 'committing', 'unknown', 'transient'],
    [['unheard-of'], 'body', 'aborted', 'permanent'],
    [[], 'committing', 'unknown', 'transient'],
    [['unheard-of', '40001'], 'committing', 'aborted', 'transient'],
  ])('rules %j in phase %s: %s, %s', (signs, phase, outcome, help) => {
    expect(ruleBy(table, signs, phase)).toMatchObject({ outcome, help })
  })

  it('says of what was blocked by a lock that it was, and of nothing else', () => {
    const locks = [{ ...table[0], sign: '55P03', body: 'repeat', blocked: true } as (typeof table)[number], ...table]
    expect(ruleBy(locks, ['55P03'], 'body')).toEqual({ ...rulingOf('repeat', '55P03'), blocked: true })
    expect(ruleBy(locks, ['40001'], 'committing')).not.toHaveProperty('blocked')
  })

  it('lets the longest sign win', () => {
    expect(ruleBy(table, ['23505'], 'body')).toMatchObject({ alarm: true })
    expect(ruleBy(table, ['23505'], 'committing')).toMatchObject({ outcome: 'aborted', alarm: false })
  })

  property(
    'never calls dead what it does not know while committing, and never repeats what it does not know in the body',
    [fc.array(fc.stringMatching(/^[A-Z]{1,8}$/))],
    (signs) => {
      expect(ruleBy(table, signs, 'committing').outcome).toBe('unknown')
      expect(ruleBy(table, signs, 'body')).toMatchObject({ outcome: 'aborted', help: 'permanent' })
    },
  )

  it('keeps a connection only where the transaction is known to be dead', () => {
    for (const word of ['repeat', 'reconnect', 'resolve', 'surface', 'halt'] as const) {
      const { outcome, connection } = rulingOf(word, 'x')
      if (connection === 'keep') expect(outcome).toBe('aborted')
    }
  })
})
