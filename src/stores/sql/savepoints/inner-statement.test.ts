import { describe, expect, it } from 'vitest'
import { innerStatementIn, postgresDialect } from '../index.js'

const read = (text: string) => innerStatementIn(text, postgresDialect)

describe('statements about inner transactions', () => {
  it('reads those of query builders', () => {
    expect([
      read('begin'),
      read('BEGIN WORK;'),
      read('begin isolation level repeatable read read only'),
      read('start transaction isolation level serializable, read write'),
      read('set transaction isolation level serializable'),
      read('commit'),
      read('END TRANSACTION'),
      read('/* mine */ rollback -- really'),
      read('abort'),
      read('savepoint sp1'),
      read('release "Sp ""1"'),
      read('rollback to savepoint SP1'),
      read('rollback work to sp1'),
    ]).toEqual([
      { does: 'begin', modes: [] },
      { does: 'begin', modes: [] },
      { does: 'begin', modes: ['isolation', 'level', 'repeatable', 'read', 'read', 'only'] },
      { does: 'begin', modes: ['isolation', 'level', 'serializable', ',', 'read', 'write'] },
      { does: 'set', modes: ['isolation', 'level', 'serializable'] },
      { does: 'commit' },
      { does: 'commit' },
      { does: 'rollback' },
      { does: 'rollback' },
      { does: 'savepoint', name: 'sp1' },
      { does: 'release', name: 'Sp "1' },
      { does: 'rollback to', name: 'sp1' },
      { does: 'rollback to', name: 'sp1' },
    ])
  })

  it.each([
    "insert into note values ('begin')",
    'select 1 as "commit"',
    'set local lock_timeout = 1',
    'update t set x = 1',
  ])('leaves %s alone', (text) => {
    expect(read(text)).toBeUndefined()
  })

  it.each([
    'begin; insert into a values (1)',
    'select 1; commit',
    'commit and chain',
    "commit prepared 'x'",
    'rollback to',
  ])('refuses %s', (text) => {
    expect(() => read(text)).toThrow(expect.objectContaining({ code: 'TRANSACTION_STATEMENT' }))
  })
})
