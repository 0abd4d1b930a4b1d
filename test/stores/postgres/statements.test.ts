// The scanner against the server's own lexer: whatever a text does to a transaction there, the scanner must have seen
// coming.

import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgresDialect, transactionStatementIn } from '../../../src/stores/sql/index.js'
import { freshDatabase } from '../../servers/fresh-database.js'

const clients: pg.Client[] = []
beforeAll(async () => {
  const { url } = await freshDatabase()
  for (const setting of ['on', 'off']) {
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => undefined)
    await client.connect()
    await client.query(
      `set standard_conforming_strings = ${setting}; set escape_string_warning = off; set client_min_messages = error`,
    )
    await client.query('create table if not exists t (a text)')
    clients.push(client)
  }
})
afterAll(async () => {
  for (const client of clients) await client.end()
})

/** Whether the text ended the transaction it ran in; undefined: the server refused it. */
async function ends(client: pg.Client, text: string): Promise<boolean | undefined> {
  const [, begun] = (await client.query(
    'begin; select pg_current_xact_id()::text as xid',
  )) as unknown as pg.QueryResult<{ xid: string }>[]
  let refused = false
  await client.query(text).catch(() => {
    refused = true
  })
  // The error comes before the server is ready again; an empty statement waits for that.
  await client.query('')
  const status = client.getTransactionStatus()
  let ended = status === 'I'
  if (status === 'T') {
    const { rows } = await client.query<{ xid: string }>('select pg_current_xact_id()::text as xid')
    ended = rows[0]?.xid !== begun?.rows[0]?.xid
  }
  await client.query('rollback')
  return refused && !ended ? undefined : ended
}

const pieces = [
  ...[
    "'",
    "''",
    '\\',
    "\\'",
    "E'",
    "e'a'\n'",
    "'a'\n'",
    "U&'",
    "b'",
    "n'",
    '$$',
    '$a$',
    '$1',
    'a$a$',
    '"',
    '""',
    '--',
    '\n',
    '\r',
  ],
  ...[
    '/*',
    '*/',
    '/**/',
    ';',
    '; ',
    ';commit',
    '; commit; ',
    ';rollback;',
    ' commit ',
    'select 1',
    'select ',
    "select '",
    '1',
    ' ',
    'x',
    ',',
    '||',
  ],
]
const soup = fc
  .array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 9 })
  .map((parts) => `select ${parts.join('')}`)

// What stands before and after a statement that ends the transaction, so that many texts are valid.
const openers = [
  "'a'",
  "E'\\''",
  "E'a'\n'\\''",
  "'\\'",
  "'\\''",
  "$$ ' $$",
  '$q$ $$ $q$',
  '1 as "a""b"',
  "'/*'",
  "1 /* ' */",
  "1 -- '\n",
  "U&'\\0041'",
  "'' ''",
  "'it''s'",
]
const closers = [
  '',
  "; select ''",
  "; --'",
  "; select '\\'",
  '; select $$ $$',
  "; select E'\\\\'",
  ' /* */',
  "; select 'x' -- \\'",
]
const crafted = fc
  .tuple(
    fc.constantFrom(...openers),
    fc.constantFrom(';', ' ; ', ';\n', ';/* ; */', ';--\n', ''),
    fc.constantFrom('commit', 'ROLLBACK', 'end', 'abort', 'select 1', "select '; commit;'"),
    fc.constantFrom(...closers),
  )
  .map(([opener, gap, statement, closer]) => `select ${opener}${gap}${statement}${closer}`)

describe('the scanner', () => {
  it('misses no statement that the server carries out', async () => {
    const counts = { cases: 0, ended: 0, ran: 0, refusedInVain: 0 }
    await fc.assert(
      fc.asyncProperty(fc.oneof(soup, crafted), async (text) => {
        for (const client of clients) {
          const happened = await ends(client, text)
          const seen = transactionStatementIn(text, postgresDialect)
          counts.cases += 1
          if (happened) {
            counts.ended += 1
            expect(seen).toBeDefined()
          } else if (happened === false) {
            counts.ran += 1
            if (seen !== undefined) counts.refusedInVain += 1
          }
        }
      }),
      { numRuns: 3_000, seed: Number(process.env['REPRISE_SEED']) },
    )
    // It means something only if many texts ended a transaction and many did not, and the scanner is not simply against
    // everything.
    expect(counts.ended).toBeGreaterThan(300)
    expect(counts.ran).toBeGreaterThan(300)
    expect(counts.refusedInVain / counts.ran).toBeLessThan(0.25)
  })

  it.each([
    'create function f1() returns int begin atomic select 1; end',
    'create function f2() returns int begin atomic select case when true then 1 end; select 2; end; select 1',
    'create or replace procedure p1() begin atomic insert into t values (1); end',
  ])('lets a routine in the standard’s form pass, as the server does: %s', async (text) => {
    expect(transactionStatementIn(text, postgresDialect)).toBeUndefined()
    expect(await ends(clients[0] as pg.Client, text)).toBe(false)
  })

  it.each([
    "create function begin() returns int language sql as 'select 1'; end",
    'create function f3() returns void begin atomic end; end',
    'create function f4() returns int begin atomic select 1 as case; end; end',
  ])('is not deceived by one: %s', async (text) => {
    expect(await ends(clients[0] as pg.Client, text)).toBe(true)
    expect(transactionStatementIn(text, postgresDialect)).toBeDefined()
  })
})
