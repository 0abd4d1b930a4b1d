import { describe, expect, it } from 'vitest'
import { type ServerSettings, settingFindings } from './postgres.js'

const sound: ServerSettings = {
  version: 150_004,
  synchronousCommit: 'on',
  fsync: true,
  fullPageWrites: true,
  synchronousStandbys: '',
  standbysConnected: 0,
  idleInTransactionMs: 60_000,
  statementTimeoutMs: 0,
  transactionTimeoutMs: 0,
  keepalivesIdleSeconds: 60,
  readOnly: false,
  inRecovery: false,
  poolMost: 10,
  serverMost: 100,
}

const codes = (change: Partial<ServerSettings>) => settingFindings({ ...sound, ...change }).map(({ code }) => code)

describe('findings', () => {
  it('are none where all is well', () => {
    expect(settingFindings(sound)).toEqual([])
  })

  it.each<[Partial<ServerSettings>, readonly string[]]>([
    [{ version: 120_010 }, ['SERVER_OLD']],
    [{ transactionTimeoutMs: 5 }, ['TRANSACTION_TIMEOUT_SET']],
    [{ synchronousCommit: 'local' }, []],
    [
      { synchronousCommit: 'remote_write', synchronousStandbys: 'a', standbysConnected: 1 },
      ['SYNCHRONOUS_COMMIT_LOCAL'],
    ],
    [{ synchronousStandbys: 'a, b' }, ['STANDBY_ABSENT']],
    [{ synchronousStandbys: '*', standbysConnected: 1 }, []],
    [{ synchronousStandbys: 'FIRST 2 (a, b, c)', standbysConnected: 1 }, ['STANDBY_ABSENT']],
    [{ synchronousStandbys: '2 (a, b)', standbysConnected: 2 }, []],
    [{ synchronousStandbys: 'any 1 (a, b)', standbysConnected: undefined }, ['STANDBYS_UNREADABLE']],
    [{ synchronousStandbys: 'a', synchronousCommit: 'local' }, ['SYNCHRONOUS_COMMIT_LOCAL']],
    [{ synchronousStandbys: 'a', inRecovery: true }, ['IN_RECOVERY']],
    [{ synchronousCommit: 'off', synchronousStandbys: 'a' }, ['SYNCHRONOUS_COMMIT_OFF']],
    [{ keepalivesIdleSeconds: 0 }, ['KEEPALIVES_LATE']],
    [{ inRecovery: true, readOnly: true }, ['IN_RECOVERY']],
    [{ poolMost: undefined }, []],
  ])('of %j are %j', (change, expected) => {
    expect(codes(change)).toEqual(expected)
  })
})
