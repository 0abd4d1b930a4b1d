import { describe, expect, it } from 'vitest'
import { RepriseError } from '../kernel/index.js'
import { codesIn, errorsIn, lockEvidenceIn } from './error-codes.js'

const error = (members: object, cause?: unknown): Error => Object.assign(new Error('x', { cause }), members)

describe('codesIn', () => {
  it.each<[string, unknown, object]>([
    ['pg', error({ code: '40001', severity: 'ERROR' }), { sqlState: '40001' }],
    ['pg, in another language', error({ code: '57P01', severity: 'VIGTIG' }), { sqlState: '57P01' }],
    ['the network', error({ code: 'EPIPE' }), { driverCode: 'EPIPE' }],
    ['SQLite', error({ code: 'SQLITE_BUSY' }), { driverCode: 'SQLITE_BUSY' }],
    [
      'mysql2',
      error({ code: 'ER_LOCK_DEADLOCK', errno: 1213, sqlState: '40001' }),
      {
        sqlState: '40001',
        driverCode: 'ER_LOCK_DEADLOCK',
      },
    ],
    ['Prisma', error({ code: 'P2010', meta: { code: '40001' } }), { sqlState: '40001', driverCode: 'P2010' }],
    [
      'Prisma 7',
      error({ code: 'P2010', meta: { driverAdapterError: error({}, { kind: 'x', originalCode: '40001' }) } }),
      { sqlState: '40001', driverCode: 'P2010' },
    ],
    ['TypeORM', error({ driverError: error({ code: '40P01', severity: 'ERROR' }) }), { sqlState: '40P01' }],
    [
      'Reprise around pg',
      new RepriseError('LOCK_TIMEOUT', 'x', { cause: error({ code: '55P03', severity: 'ERROR' }) }),
      {
        sqlState: '55P03',
      },
    ],
    ['what is no code', error({ code: 'alice@example.com' }), {}],
    ['nothing', undefined, {}],
  ])('of %s', (_name, given, codes) => {
    expect(codesIn(given)).toEqual(codes)
  })
})

describe('errorsIn', () => {
  it('ends at a cycle', () => {
    const round = error({})
    round.cause = round
    expect([...errorsIn(round)].length).toBeLessThan(100)
  })
})

describe('lockEvidenceIn', () => {
  const evidence = [{ cause: 'batch', sentence: 'Session 7 has the whole table item locked.' }]
  const timedOut = (told: object) => Object.assign(new RepriseError('LOCK_TIMEOUT', 'x'), told)

  it.each<[string, unknown, unknown]>([
    ['a lock time-out', timedOut({ evidence }), evidence],
    ['one that was wrapped', error({}, timedOut({ evidence })), evidence],
    ['one that has none', timedOut({ evidence: [] }), undefined],
    ['one of a store that tells nothing', timedOut({}), undefined],
    ['a stranger’s error', error({ evidence }), undefined],
  ])('of %s', (_name, given, found) => expect(lockEvidenceIn(given)).toEqual(found))
})
