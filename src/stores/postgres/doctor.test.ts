import { describe, expect, it } from 'vitest'
import { findingsOf, type ServerSettings } from './doctor.js'

const sound: ServerSettings = {
  version: 150_004,
  synchronousCommit: 'on',
  fsync: true,
  fullPageWrites: true,
  synchronousStandbys: '',
  idleInTransactionMs: 60_000,
  statementTimeoutMs: 0,
  transactionTimeoutMs: 0,
  keepalivesIdleSeconds: 60,
  readOnly: false,
  inRecovery: false,
  poolMost: 10,
  serverMost: 100,
}

const codes = (change: Partial<ServerSettings>) => findingsOf({ ...sound, ...change }).map(({ code }) => code)

describe('findings', () => {
  it('are none where all is well', () => {
    expect(findingsOf(sound)).toEqual([])
  })

  it.each<[Partial<ServerSettings>, readonly string[]]>([
    [{ version: 120_010 }, ['SERVER_OLD']],
    [{ transactionTimeoutMs: 5 }, ['TRANSACTION_TIMEOUT_SET']],
    [{ synchronousCommit: 'local' }, []],
    [{ synchronousCommit: 'remote_write', synchronousStandbys: 'a' }, ['SYNCHRONOUS_COMMIT_LOCAL']],
    [{ synchronousCommit: 'off', synchronousStandbys: 'a' }, ['SYNCHRONOUS_COMMIT_OFF']],
    [{ keepalivesIdleSeconds: 0 }, ['KEEPALIVES_LATE']],
    [{ inRecovery: true, readOnly: true }, ['IN_RECOVERY']],
    [{ poolMost: undefined }, []],
  ])('of %j are %j', (change, expected) => {
    expect(codes(change)).toEqual(expected)
  })
})
