// The database of one form of an app: made as its user makes it, and looked at past the app.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import { inject } from 'vitest'
import { gate } from '../../gate.js'
import { createDatabase } from '../../servers/fresh-database.js'
import { withClient } from '../../servers/postgres.js'
import { type Form, filesOf, type Project } from './project.js'

/** The database of one form. */
export interface Shop {
  /** Where it is, for the app. */
  readonly env: Readonly<Record<string, string>>
  /** How many orders there are of an item. */
  orders(item: string): Promise<number>
  /** Lets nobody write an order until the function it returns is called. */
  hold(): Promise<() => Promise<void>>
  remove(): Promise<void>
}

/** The statements that make the tables of a form: those of the app, then those that it needs beyond them. */
function schemaOf(app: string, form: Form): string {
  const files = new Map([...filesOf(app, 'as-it-was'), ...filesOf(app, form)])
  const texts = [...files].filter(([name]) => name.endsWith('.sql')).map(([, text]) => text)
  return texts.join('')
}

/** A database of PostgreSQL. */
export async function inPostgres(project: Project, app: string, form: Form): Promise<Shop> {
  const { url, drop } = await createDatabase(inject('postgresUrl'))
  const env = { DATABASE_URL: url }
  await withClient(url, (client) => client.query(schemaOf(app, form)))
  if (form === 'with-reprise') project.npx(['reprise', 'migrate'], env)
  return {
    env,
    orders: (item) =>
      withClient(url, async (client) => {
        const { rows } = await client.query('select count(*)::int as n from orders where item = $1', [item])
        return Number(rows[0]?.n)
      }),
    hold: async () => {
      const [held, release] = [gate(), gate()]
      const over = withClient(url, async (client) => {
        await client.query('begin; lock table orders in exclusive mode')
        held.open()
        await release.opened
        await client.query('commit')
      })
      await Promise.race([held.opened, over])
      return () => {
        release.open()
        return over
      }
    },
    remove: drop,
  }
}

/** A database in a file. */
export interface FileShop extends Shop {
  run(statement: string): void
}

/** A file of SQLite. */
export async function inSqlite(project: Project, app: string, form: Form): Promise<FileShop> {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-app-'))
  const file = join(folder, 'shop.db')
  const connection = new Database(file)
  connection.exec('pragma journal_mode = wal')
  connection.exec(schemaOf(app, form))
  if (form === 'with-reprise') project.npx(['reprise', 'migrate', '--url', `sqlite:${file}`])
  return {
    env: { DATABASE_FILE: file },
    run: (statement) => void connection.exec(statement),
    orders: async (item) =>
      Number(Object(connection.prepare('select count(*) as n from orders where item = ?').get(item)).n),
    hold: async () => {
      connection.exec('begin immediate')
      return async () => void connection.exec('commit')
    },
    remove: async () => {
      connection.close()
      rmSync(folder, { recursive: true })
    },
  }
}
