// A transition knows its own repeat whatever the type of the column of commands: PostgreSQL compares, as the column
// does.

import { beforeAll, describe, expect, it } from 'vitest'
import { postgresWorld, type World } from './world.js'

let world: World
beforeAll(async () => {
  world = await postgresWorld()
})

const uuid = '8b1f3c5a-9d2e-4f60-a1b2-c3d4e5f60718'
const types: readonly (readonly [
  type: string,
  first: string | number | bigint,
  repeats: readonly unknown[],
  other: string,
])[] = [
  ['text', 'pay-1', ['pay-1'], 'PAY-1'],
  ['varchar(40)', 7, [7, 7n, '7'], '07'],
  ['char(12)', 'pay-1', ['pay-1'], 'pay-2'],
  ['uuid', uuid.toUpperCase(), [uuid.toUpperCase(), uuid, `{${uuid.replaceAll('-', '')}}`], uuid.replace('8b', '8c')],
  ['integer', '7', ['7', 7, 7n, '007'], '8'],
  ['bigint', 2n ** 60n, [2n ** 60n, String(2n ** 60n)], String(2n ** 60n + 1n)],
  ['numeric', '7', ['7', '7.0'], '8'],
]

describe.each(types)('commands in a column of %s', (type, first, repeats, other) => {
  const table = `by_${type.replaceAll(/\W/g, '')}`
  const move = (command: unknown, from: string | readonly string[] = 'new', to = 'paid') =>
    world.db.transact((tx) =>
      tx.transition(table, { where: { id: 'x' }, from, to, command: command as string, set: { amount: 1 } }),
    )

  it('are told from each other, and from their repeats', async () => {
    await world.raw.query(
      `create table ${table} (id text primary key, state text not null, last_command ${type}, amount int);
       insert into ${table} values ('x', 'new', null, 0)`,
    )
    expect(await move(first)).toEqual({ result: 'applied' })
    for (const repeat of repeats) {
      expect(await move(repeat)).toEqual({ result: 'already-applied' })
      // Also where the state would allow it once more.
      expect(await move(repeat, ['new', 'paid'], 'paid')).toEqual({ result: 'already-applied' })
    }
    expect(await move(other)).toEqual({ result: 'invalid', state: 'paid' })
    expect(await move(other, 'paid', 'sent')).toEqual({ result: 'applied' })
    expect(await move(first)).toEqual({ result: 'invalid', state: 'sent' })
  })
})

it('states are compared by the database too', async () => {
  await world.raw.query(
    `create type stage as enum ('new', 'paid');
     create table staged (id text primary key, state stage not null, last_command text);
     create table padded (id text primary key, state char(8) not null, last_command text);
     insert into staged values ('x', 'new', null);
     insert into padded values ('x', 'new', null)`,
  )
  for (const table of ['staged', 'padded']) {
    const move = (command: string) =>
      world.db.transact((tx) => tx.transition(table, { where: { id: 'x' }, from: 'new', to: 'paid', command }))
    expect(await move('c1')).toEqual({ result: 'applied' })
    expect(await move('c1')).toEqual({ result: 'already-applied' })
    expect((await move('c2')).result).toBe('invalid')
  }
})
