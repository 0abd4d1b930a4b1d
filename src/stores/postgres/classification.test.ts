import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../../test/property.js'
import { RepriseError } from '../../kernel/index.js'
import { classifyPostgres, endsConnection, signsOf } from './classification.js'
import { postgresClassification } from './index.js'

const server = (code: string, severity = 'ERROR', more = {}) =>
  Object.assign(new Error('x'), { code, severity, ...more })

describe('signs', () => {
  it('are the code, and what its severity means where the code is not listed', () => {
    expect(signsOf(server('40001'))).toEqual(['40001', 'error-at-commit'])
    expect(signsOf(server('57P01', 'FATAL'))).toEqual(['fatal-at-commit', '57P01', 'fatal'])
    // A server that speaks another language: nothing is concluded from the word.
    expect(signsOf(server('40001', 'FEHLER'))).toEqual(['40001'])
    expect(classifyPostgres(server('22012', 'FEHLER'), 'committing')).toMatchObject({ outcome: 'unknown' })
    expect(classifyPostgres(server('40001', 'FEHLER'), 'committing')).toMatchObject({ outcome: 'aborted' })
  })

  it('do not mistake a code of the system for one of SQL', () => {
    expect(signsOf(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }))).toEqual(['connection-lost'])
    expect(signsOf(Object.assign(new Error('x'), { code: '40001' }))).toEqual([])
  })

  it('come from the cause where an error wraps another one', () => {
    const wrapped = new Error('Failed query', { cause: new Error('again', { cause: server('40P01') }) })
    expect(classifyPostgres(wrapped, 'body')).toMatchObject({ sign: '40P01', help: 'transient' })
    const circle = new Error('x')
    circle.cause = circle
    expect(signsOf(circle)).toEqual([])
  })

  it.each([
    'Connection terminated unexpectedly',
    'Connection terminated',
    'Client has encountered a connection error and is not queryable',
    'Client was closed and is not queryable',
  ])('know the driver by its words: %s', (message) => {
    expect(classifyPostgres(new Error(message), 'committing')).toMatchObject({
      outcome: 'unknown',
      sign: 'connection-lost',
    })
    expect(endsConnection(new Error(message))).toBe(true)
  })

  it.each([
    ['timeout exceeded when trying to connect', 'POOL_EXHAUSTED'],
    ['timeout expired', 'CONNECT_TIMEOUT'],
    ['Connection terminated due to connection timeout', 'CONNECT_TIMEOUT'],
    ['Cannot use a pool after calling end on the pool', 'pool-ended'],
    ['Query read timeout', 'query-timeout'],
  ])('know the pool by its words: %s', (message, sign) => {
    expect(signsOf(new Error(message))).toEqual([sign])
  })
})

describe('rulings', () => {
  it('of FATAL at COMMIT are never an abort, whatever the code', () => {
    for (const code of ['40001', '23505', '57014', '25P04']) {
      expect(classifyPostgres(server(code, 'FATAL'), 'committing')).toMatchObject({ outcome: 'unknown' })
    }
  })

  it('of any other ERROR at COMMIT are an abort', () => {
    expect(classifyPostgres(server('42883'), 'committing')).toMatchObject({ outcome: 'aborted', help: 'permanent' })
  })

  it('of what nobody knows: dead in the body, unknown at COMMIT', () => {
    for (const error of [undefined, null, 7, 'x', {}, new Error('y')]) {
      expect(classifyPostgres(error, 'body')).toMatchObject({ outcome: 'aborted', help: 'permanent' })
      expect(classifyPostgres(error, 'committing')).toMatchObject({ outcome: 'unknown' })
    }
  })

  it('of COMMIT answered with ROLLBACK follow the first error, and are an abort in any case', () => {
    const rolledBack = (cause: unknown) =>
      classifyPostgres(new RepriseError('COMMIT_ROLLED_BACK', 'x', { cause }), 'committing')
    expect(rolledBack(server('40001'))).toMatchObject({ outcome: 'aborted', help: 'transient' })
    expect(rolledBack(server('23505'))).toMatchObject({ outcome: 'aborted', help: 'permanent' })
    expect(rolledBack(server('40003'))).toMatchObject({ outcome: 'aborted' })
    expect(classifyPostgres(new RepriseError('COMMIT_ROLLED_BACK', 'x'), 'committing')).toMatchObject({
      outcome: 'aborted',
      help: 'permanent',
    })
  })

  it('of something other than COMMIT or ROLLBACK in answer to COMMIT are unknown', () => {
    expect(classifyPostgres(new RepriseError('COMMIT_UNCLEAR', 'x'), 'committing')).toMatchObject({
      outcome: 'unknown',
    })
  })

  it('follow the engine’s error inside a lock time-out, and Reprise’s own code where it says more', () => {
    expect(classifyPostgres(new RepriseError('LOCK_TIMEOUT', 'x', { cause: server('55P03') }), 'body')).toMatchObject({
      sign: '55P03',
      help: 'transient',
    })
    expect(
      classifyPostgres(new RepriseError('POOLING_UNSUPPORTED', 'x', { cause: server('08P01', 'FATAL') }), 'connecting'),
    ).toMatchObject({ alarm: true })
  })

  it('have a reason each', () => {
    for (const { why, name } of postgresClassification) expect(why.length + name.length).toBeGreaterThan(10)
  })
})

const codes = fc.string({ unit: fc.constantFrom(...'0123456789ABPXZ'), minLength: 5, maxLength: 5 })
property(
  'no SQLSTATE is taken for an abort at COMMIT unless the server said ERROR or it is listed',
  [codes, fc.constantFrom('FATAL', 'PANIC', 'ERROR', 'FEHLER')],
  (code, severity) => {
    const ruling = classifyPostgres(server(code, severity), 'committing')
    if (severity === 'FATAL' || severity === 'PANIC') expect(ruling.outcome).toBe('unknown')
    if (/^(08|XX)|^40003$/.test(code)) expect(ruling.outcome).toBe('unknown')
    expect(classifyPostgres(server(code, severity), 'body').outcome).toBe(
      /^(08007|40003)$/.test(code) ? 'unknown' : 'aborted',
    )
  },
)
