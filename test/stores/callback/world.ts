// A database with Reprise's tables and one for payments, and a back door to it.

import pg from 'pg'
import { afterAll } from 'vitest'
import { scope } from '../../../src/identity/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { freshDatabase } from '../../servers/fresh-database.js'

/** What the tests work with. */
export interface World {
  readonly url: string
  /** The back door. */
  readonly raw: pg.Client
  /** How many payments of an intent are stored. */
  payments(intent: string): Promise<number>
  /** Ends a stack after the tests of the file. */
  keep<Opened extends { close(): Promise<void> }>(stack: Opened): Opened
}

/** Whose keys they are. */
export const tests = scope('tests')

/** Makes a world; everything is ended after the tests of the file. */
export async function callbackWorld(): Promise<World> {
  const { url } = await freshDatabase()
  const raw = new pg.Client({ connectionString: url, application_name: 'back door' })
  raw.on('error', () => undefined)
  await raw.connect()
  const maker = new pg.Pool({ connectionString: url, max: 1 })
  await postgres({ name: 'maker', pool: maker, connectionWait: '60s' }).migrate()
  await maker.end()
  await raw.query(`
    create table payment (id text primary key, intent text not null);
    create table late (code text);
    create function complain() returns trigger language plpgsql as 'begin raise exception using errcode = new.code, message = $$late$$; end';
    create constraint trigger late after insert on late deferrable initially deferred for each row execute function complain()`)
  const stacks: { close(): Promise<void> }[] = []
  afterAll(async () => {
    for (const stack of stacks) await stack.close()
    await raw.end()
  })
  return {
    url,
    raw,
    async payments(intent) {
      const { rows } = await raw.query('select count(*)::int as n from payment where intent = $1', [intent])
      return rows[0].n
    },
    keep(stack) {
      stacks.push(stack)
      return stack
    },
  }
}

/** What a promise is rejected with. */
export function caught(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    (value) => new Error(`there was no error, but ${JSON.stringify(value)}`),
    (error: unknown) => error,
  )
}
