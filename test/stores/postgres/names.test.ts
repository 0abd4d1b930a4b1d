// Names in capitals: of the user's own tables they are taken as they are, of Reprise's tables they are refused before
// anything is sent.

import { beforeAll, describe, expect, it } from 'vitest'
import { postgres } from '../../../src/stores/postgres/index.js'
import { pgStack } from '../callback/orms.js'
import { postgresWorld, type World } from './world.js'

let world: World
beforeAll(async () => {
  world = await postgresWorld()
  await world.raw.query(
    `create schema "Shop";
     create table "Shop"."Orders" ("Id" text primary key, "State" text, "Last" text, "Version" int not null default 0, "Amount" int);
     create schema own`,
  )
})

const tables = async () =>
  (await world.raw.query("select relname from pg_class where relname ~* 'own|Shop_'")).rows.map(
    ({ relname }) => relname,
  )

describe('a table in capitals', () => {
  it.each(['Shop.Orders', { schema: 'Shop', table: 'Orders' }])('is reached as %o', async (table) => {
    const id = `of ${typeof table}`
    const insert = { Id: id, State: 'new', Amount: 1 }
    const found = await world.db.transact(async (tx) => [
      (await tx.insertOnce(table, insert, ['Id'])).inserted,
      (await tx.insertOnce(table, insert, ['Id'])).inserted,
      await tx.transition(table, {
        where: { Id: id },
        column: 'State',
        commandColumn: 'Last',
        from: 'new',
        to: 'paid',
        command: 'c1',
      }),
      await tx.updateRows(table, { Id: id, State: 'paid' }, { Amount: 2 }),
      (await tx.lockRow(table, { Id: id }))?.['Amount'] as number,
    ])
    expect(found).toEqual([true, false, { result: 'applied' }, 1, 2])
    const update = { table, where: { Id: id }, versionColumn: 'Version', decide: () => ({ Amount: 3 }) }
    expect(await world.db.optimistic(update)).toMatchObject({ result: 'written', row: { Amount: 3, Version: 1 } })
  })

  it('is another one than that in small letters', async () => {
    const lower = world.db.transact((tx) => tx.readRow('shop.orders', { Id: 'a' }))
    await expect(lower).rejects.toMatchObject({ code: '42P01' })
  })
})

describe('Reprise’s own tables', () => {
  const odd = ['Shop', 'sHop', 'SHOP_', 'own-', 'own.a', '7own', 'ö', 'o"n', "o'n"]

  it.each(odd)('are not made in a schema or under a prefix called %s', async (name) => {
    for (const option of ['schema', 'prefix'] as const) {
      const refusal = expect.objectContaining({ code: 'ARGUMENT_INVALID', details: { option } })
      expect(() => postgres({ pool: world.pool, name: 'odd', [option]: name })).toThrow(refusal)
      expect(() => pgStack(world.url, { [option]: name })).toThrow(refusal)
    }
    expect(await tables()).toEqual([])
  })

  it('are made, used and found again in a schema and under a prefix of small letters', async () => {
    const db = postgres({ pool: world.pool, name: 'own', schema: 'own', prefix: 'own_' })
    await db.migrate()
    expect((await tables()).length).toBeGreaterThan(1)
    expect((await db.doctor()).filter(({ code }) => code.startsWith('MIGRATION'))).toEqual([])
    await db.close()
  })
})
