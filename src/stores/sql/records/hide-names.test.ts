import Libsql from 'libsql'
import { expect, it } from 'vitest'
import { pepperOf } from '../../../identity/index.js'
import { hideNames } from './hide-names.js'

const pepper = pepperOf('the-secret-of-the-shop')
const tables = { marker: 'marker', audit: 'audit', window: 'window_', seen: 'seen', nowMs: '1000' }

function target() {
  const database = new Libsql(':memory:')
  database.exec(`create table marker (id text primary key, format integer default 2, scope text, fingerprint text,
      mode text default 'atomic', state text default 'succeeded', codec text, value text, expires_at_ms integer);
    create table audit (number integer primary key, id text not null);
    create table window_ (name text primary key, pepper text); create table seen (id text primary key)`)
  return {
    database,
    rows: (text: string) => database.prepare(text).all() as Record<string, unknown>[],
    async run(text: string) {
      if (text.startsWith('SELECT')) return database.prepare(text).all() as Record<string, unknown>[]
      database.exec(text)
      return []
    },
  }
}

it('hides names, scopes and fingerprints, whatever is in them, and the notes of records that are gone', async () => {
  const { database, rows, run } = target()
  const print = "json1-sha256;omit=%2Fit's:abc"
  database.exec(`insert into marker (id, scope, fingerprint) values
    ('sha256:a', 'sha256:s', 'json1-sha256;omit=%2Fit''s:abc'), ('sha256:b', null, null)`)
  database.exec("insert into audit (id) values ('sha256:a'), ('sha256:gone'), ('sha256:gone')")
  expect(await hideNames({ run }, tables, pepper)).toBe(2)
  expect(rows('select id, scope, fingerprint from marker order by scope')).toEqual([
    { id: pepper.hide('sha256:b'), scope: null, fingerprint: null },
    { id: pepper.hide('sha256:a'), scope: pepper.hide('sha256:s'), fingerprint: pepper.hide(print) },
  ])
  expect(rows('select id from audit order by number').map(({ id }) => id)).toEqual(
    ['sha256:a', 'sha256:gone', 'sha256:gone'].map((id) => pepper.hide(id)),
  )
  expect(rows("select name from sqlite_temp_schema where type = 'table'")).toEqual([])
})

it('hides what dedupe windows have accepted, and says so of each window', async () => {
  const { database, rows, run } = target()
  database.exec("insert into window_ values ('orders', 'none'); insert into seen values ('sha256:a'), ('sha256:b')")
  expect(await hideNames({ run }, tables, pepper)).toBe(0)
  expect(rows('select * from window_')).toEqual([{ name: 'orders', pepper: pepper.id }])
  const hidden = rows('select id from seen').map(({ id }) => id)
  expect(hidden.sort()).toEqual(['sha256:a', 'sha256:b'].map((id) => pepper.hide(id)).sort())
})

it.each([
  ["mode = 'leased', state = 'claimed'", { unfinished: 1 }],
  ["mode = 'leased', state = 'unknown'", { unfinished: 1 }],
  ["codec = 'aes-256-gcm-1', value = 'x', expires_at_ms = 1001", { encrypted: 1 }],
  ["codec = 'aes-256-gcm-1', value = 'x'", { encrypted: 1 }],
  ['format = 3', { newer: 1 }],
])('refuses a record that depends on its name: %s', async (set, details) => {
  const { database, rows, run } = target()
  database.exec(`insert into marker (id) values ('sha256:a'); update marker set ${set}`)
  await expect(hideNames({ run }, tables, pepper)).rejects.toMatchObject({ code: 'PEPPER_RENAME_REFUSED', details })
  expect(rows('select id from marker')).toEqual([{ id: 'sha256:a' }])
})

it.each([
  "mode = 'leased'",
  "codec = 'aes-256-gcm-1', value = 'x', expires_at_ms = 1000",
  "codec = 'http-1', value = 'x'",
])('renames one that does not: %s', async (set) => {
  const { database, run } = target()
  database.exec(`insert into marker (id) values ('sha256:a'); update marker set ${set}`)
  expect(await hideNames({ run }, tables, pepper)).toBe(1)
})
