// SQLite under the conformance suite, with any driver that opens a file.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pepperOf } from '../../../src/identity/index.js'
import type { Clock } from '../../../src/kernel/index.js'
import { recordValues } from '../../../src/stores/sql/index.js'
import { type SqliteHandle, sqlite } from '../../../src/stores/sqlite/index.js'
import type { OpenWorld } from './store-under-test.js'
import { makeTables, putRecordText } from './tables.js'

/** A fresh file of SQLite, opened by the given driver; with a pepper, if that is wanted. */
export async function sqliteWorld(open: (file: string) => SqliteHandle, pepper?: string): Promise<OpenWorld> {
  const folder = await mkdtemp(join(tmpdir(), 'reprise-conformance-'))
  const file = join(folder, 'store.db')
  const pepperOption = pepper === undefined ? {} : { pepper }
  const marker = pepper === undefined ? 'reprise_marker' : `reprise_marker_${pepperOf(pepper).id}`
  const domain = (defaults: { readonly clock?: Clock } = {}) =>
    sqlite({ name: 'sqlite', open: () => open(file), ...pepperOption, ...defaults })
  const db = domain()
  const others: ReturnType<typeof domain>[] = []
  await db.migrate()
  const raw = open(file)
  raw.exec(makeTables)
  return {
    db,
    connections: 1,
    async second(defaults) {
      const other = domain(defaults)
      others.push(other)
      return other
    },
    async effect(tx, intent) {
      await (tx as Parameters<Parameters<typeof db.transact>[0]>[0]).query('insert into effects values (?)', [intent])
    },
    async offend(tx) {
      await (tx as Parameters<Parameters<typeof db.transact>[0]>[0]).query('select * from nowhere')
    },
    effectsOf: async (intent) =>
      Number(
        (raw.prepare('select count(*) as n from effects where intent = ?').get(intent as never) as { n: number }).n,
      ),
    async putRecord(id, record) {
      raw.prepare(putRecordText(() => '?', marker)).run(...([id, ...recordValues(record)] as never[]))
    },
    item: async (id) =>
      raw.prepare('select * from items where id = ?').get(id as never) as Record<string, unknown> | undefined,
    async putItem({ id, state = 'new', amount = 0 }) {
      raw
        .prepare('insert into items (id, state, amount, version) values (?, ?, ?, 0)')
        .run(...([id, state, amount] as never[]))
    },
    async close() {
      for (const domain of [db, ...others]) await domain.close()
      raw.close()
      await rm(folder, { recursive: true })
    },
  }
}
