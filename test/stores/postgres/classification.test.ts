// Every row of the classification table, with the error it is about: produced by a real server, the driver, or the
// store itself.

import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Phase, rulingOf } from '../../../src/atomicity/index.js'
import { postgres, postgresClassification } from '../../../src/stores/postgres/index.js'
import { startPgbouncer } from '../../servers/pgbouncer.js'
import { type Postgres, startPostgres } from '../../servers/postgres.js'
import { behindPgbouncer, slowTable } from './behind-pgbouncer.js'
import { begun, engineOn, postgresWorld, until, untilWaiting, type World } from './world.js'

type Caught = readonly [error: unknown, phase: Phase]
type Trigger = () => Promise<Caught>

let world: World
let small: Postgres
beforeAll(async () => {
  world = await postgresWorld()
  await world.raw.query(`
    insert into item (id) values ('a'), ('b');
    create table late (code text);
    create function complain() returns trigger language plpgsql as 'begin raise exception using errcode = new.code, message = $$late$$; end';
    create constraint trigger late after insert on late deferrable initially deferred for each row execute function complain();
    ${slowTable}`)
  small = await startPostgres({ fsync: false, settings: { max_connections: '6', superuser_reserved_connections: '0' } })
})
afterAll(() => small.dispose())

const caught = (promise: Promise<unknown> | undefined) =>
  Promise.resolve(promise).then(
    () => new Error('there was no error'),
    (error: unknown) => error,
  )

/** An error in the body of a transaction. */
const inBody =
  (work: (tx: Awaited<ReturnType<typeof begun>>['tx']) => Promise<unknown>, settings = {}): Trigger =>
  async () => {
    const { session, tx } = await begun(world.engine, settings)
    const error = await caught(work(tx))
    session.release('discard')
    return [error, 'body']
  }

/** An error in answer to COMMIT. */
const atCommit =
  (code: string): Trigger =>
  async () => {
    const { session, tx } = await begun(world.engine)
    await tx.query('insert into late values ($1)', [code])
    const error = await caught(session.commit())
    session.release('discard')
    return [error, 'committing']
  }

/** An error of the server on the way to a transaction. */
const connecting =
  (config: pg.PoolConfig, waitMs = 60_000): Trigger =>
  async () => {
    const pool = new pg.Pool(config)
    const error = await caught(begunOn(pool, waitMs))
    await pool.end()
    return [error, 'connecting']
  }

async function begunOn(pool: pg.Pool, waitMs: number): Promise<void> {
  const session = await engineOn(pool).acquire({ waitMs, readOnly: false })
  session.release('discard')
}

const raise = (code: string): Trigger => inBody((tx) => tx.query(`do $$ begin raise sqlstate '${code}'; end $$`))

async function deadlock(): Promise<Caught> {
  const [first, second] = [await begun(world.engine), await begun(world.engine)]
  await first.tx.lockRow('item', { id: 'a' })
  await second.tx.lockRow('item', { id: 'b' })
  const errors = await Promise.all([
    caught(first.tx.lockRow('item', { id: 'b' })),
    caught(second.tx.lockRow('item', { id: 'a' })).finally(() => undefined),
    untilWaiting(world.raw),
  ])
  first.session.release('discard')
  second.session.release('discard')
  return [errors.find((error) => (error as { code?: string } | undefined)?.code === '40P01'), 'body']
}

async function serialization(): Promise<Caught> {
  const [first, second] = await Promise.all([
    begun(world.engine, { isolation: 'serializable' }),
    begun(world.engine, { isolation: 'serializable' }),
  ])
  for (const { tx } of [first, second]) await tx.query('select sum(amount) from item')
  await first.tx.query("update item set amount = 1 where id = 'a'")
  await second.tx.query("update item set amount = 1 where id = 'b'")
  await first.session.commit()
  const error = await caught(second.session.commit())
  first.session.release('keep')
  second.session.release('discard')
  return [error, 'committing']
}

async function killedInCommit(): Promise<Caught> {
  const { session, tx } = await begun(world.engine)
  await world.raw.query('select pg_advisory_lock(7)')
  await tx.query('insert into slow values (1)')
  const committing = caught(session.commit())
  await untilWaiting(world.raw)
  await world.raw.query('select pg_terminate_backend($1), pg_advisory_unlock(7)', [session.trace?.['pid']])
  const error = await committing
  session.release('discard')
  return [error, 'committing']
}

async function poisonedBy(
  settings: { idleMs?: number },
  kill: (pid: string | undefined) => Promise<unknown>,
): Promise<Caught> {
  const { session } = await begun(world.engine, settings)
  await kill(session.trace?.['pid'])
  await until('it is poisoned', () => session.poisoned !== undefined)
  session.release('discard')
  return [session.poisoned?.error, 'body']
}

async function brokenSocket(): Promise<Caught> {
  const { session, tx } = await begun(world.engine)
  const sockets = (world.pool as unknown as { _clients: { connection: { stream: { destroy(): void } } }[] })._clients
  const sleeping = caught(tx.query('select pg_sleep(60)'))
  for (const { connection } of sockets) connection.stream.destroy()
  const error = await sleeping
  session.release('discard')
  return [error, 'body']
}

/** A session, and the client under it, for what happens behind the handle's back. */
async function withClientBehind() {
  const pool = new pg.Pool({ connectionString: world.url, max: 1 })
  let client: pg.PoolClient | undefined
  pool.on('acquire', (acquired) => {
    client = acquired
  })
  const { session } = await begun(engineOn(pool))
  const behind = (): pg.PoolClient => client as pg.PoolClient
  const end = (): Promise<void> => {
    session.release('discard')
    return pool.end()
  }
  return { behind, session, end }
}

const triggers: Readonly<Record<string, Trigger | readonly Trigger[]>> = {
  'triggers 40001': [serialization, raise('40001')],
  'triggers 40P01': deadlock,
  'triggers 40000, raised by a function': [raise('40000'), atCommit('40000')],
  'triggers 40002, raised by a function': [raise('40002'), atCommit('40002')],
  'triggers 40003, raised by a function': [raise('40003'), atCommit('40003')],
  'triggers 23*': [inBody((tx) => tx.query("insert into item (id) values ('a')")), atCommit('23505')],
  'triggers 55P03': inBody(async (tx) => {
    const holder = await begun(world.engine)
    await holder.tx.lockRow('item', { id: 'a' })
    await tx.lockRow('item', { id: 'a' }, { wait: 'nowait' }).finally(() => holder.session.release('discard'))
  }),
  'triggers 57014': inBody((tx) =>
    tx.query("select set_config('statement_timeout', '20', true)").then(() => tx.query('select pg_sleep(60)')),
  ),
  'triggers 57P01': () => poisonedBy({}, (pid) => world.raw.query('select pg_terminate_backend($1)', [pid])),
  'triggers 57P03': async () => {
    // Stopped, but not before the one who is connected leaves.
    const server = await startPostgres({ fsync: false })
    const client = new pg.Client(server.url)
    await client.connect()
    process.kill(server.pid, 'SIGTERM')
    let found: Caught = [undefined, 'connecting']
    await until('it refuses', async () => {
      found = await connecting({ connectionString: server.url })()
      return (found[0] as { code?: string }).code === '57P03'
    })
    await client.end()
    await server.dispose()
    return found
  },
  'triggers 57P04, raised by a function': [raise('57P04'), atCommit('57P04')],
  'triggers 3D000': () => connecting({ connectionString: `${world.url}_absent` })(),
  'triggers 28*': () => connecting({ connectionString: world.url.replace('postgres@', 'nobody_here@') })(),
  'triggers 25P01': async () => [await caught(world.raw.query('savepoint x')), 'body'],
  'triggers 25P02': async () => {
    const client = await world.pool.connect()
    await client.query('begin')
    await caught(client.query('select 1/0'))
    const error = await caught(client.query('select 1'))
    client.release(true)
    return [error, 'body']
  },
  'triggers 25P03': () => poisonedBy({ idleMs: 1_000 }, async () => undefined),
  'triggers 25P04, raised by a function': [raise('25P04'), atCommit('25P04')],
  'triggers 25006': inBody((tx) =>
    tx.query("select set_config('transaction_read_only', 'on', true)").then(() => tx.query('delete from item')),
  ),
  'triggers TRANSACTION_READ_ONLY': inBody((tx) => tx.query('delete from item'), { readOnly: true }),
  'triggers SAVEPOINT_ORDER': async () => {
    const { session, tx } = await begun(world.engine)
    const forgotten = caught(tx.savepoint(() => tx.query('select 1')))
    const error = await caught(session.commit())
    await session.rollback()
    session.release('discard')
    await forgotten
    return [error, 'committing']
  },
  'triggers 53300': async () => {
    const clients = await Promise.all(
      Array.from({ length: 6 }, async () => {
        let client = new pg.Client(small.url)
        // Those that were there before may not have gone yet.
        await until('there is a place', async () => {
          client = new pg.Client(small.url)
          client.on('error', () => undefined)
          return client.connect().then(
            () => true,
            () => false,
          )
        })
        return client
      }),
    )
    const found = await connecting({ connectionString: small.url })()
    await Promise.all(clients.map((client) => client.end()))
    return found
  },
  'triggers 53200, raised by a function': [raise('53200'), atCommit('53200')],
  'triggers 53100, raised by a function': [raise('53100'), atCommit('53100')],
  'triggers 58030, raised by a function': [raise('58030'), atCommit('58030')],
  'triggers 08*, raised by a function': [raise('08006'), atCommit('08P01')],
  'triggers 08P01': [behindPgbouncer('body'), behindPgbouncer('connecting')],
  'triggers values-mismatch': inBody((tx) => tx.query('select $1::text', ['one', 'too many'])),
  'triggers COMMIT_ROLLED_BACK': async () => {
    const { behind, session, end } = await withClientBehind()
    await caught(behind().query('select 1/0'))
    const error = await caught(session.commit())
    await end()
    return [error, 'committing']
  },
  'triggers TRANSACTION_ABORTED': async () => {
    const { session, tx } = await begun(world.engine)
    await caught(tx.query('select 1/0'))
    const error = await caught(session.commit())
    session.release('discard')
    return [error, 'committing']
  },
  'triggers 08007, raised by a function': [raise('08007'), atCommit('08007')],
  'triggers XX*, raised by a function': [raise('XX000'), atCommit('XX000')],
  'triggers cached-plan-changed': inBody(async (tx) => {
    const statement = { name: 'plan', text: 'select * from item' }
    await tx.db.query(statement)
    await tx.query('alter table item add column extra text')
    await tx.db.query(statement)
  }),
  'triggers 26000': inBody(async (tx) => {
    const statement = { name: 'forgotten', text: 'select 1' }
    await tx.db.query(statement)
    await tx.query('deallocate all')
    await tx.db.query(statement)
  }),
  'triggers 42P05': inBody((tx) =>
    tx.query('prepare twice as select 1').then(() => tx.db.query({ name: 'twice', text: 'select 1' })),
  ),
  'triggers fatal-at-commit': [killedInCommit, behindPgbouncer('committing')],
  'triggers fatal': () => connecting({ connectionString: world.url, options: '-c nosuch=1' })(),
  'triggers error-at-commit': atCommit('22012'),
  'triggers connection-lost': brokenSocket,
  'triggers connection-refused': () => connecting({ host: '127.0.0.1', port: 1 })(),
  'triggers query-timeout': async () => {
    const pool = new pg.Pool({ connectionString: world.url, max: 1 })
    let settings: { query_timeout?: number } = {}
    pool.on('acquire', (client) => {
      settings = (client as unknown as { connectionParameters: typeof settings }).connectionParameters
    })
    const { session, tx } = await begun(engineOn(pool))
    // For the one statement, since BEGIN may take longer.
    settings.query_timeout = 100
    const error = await caught(tx.query('select pg_sleep(60)'))
    expect(session.poisoned?.error).toBe(error)
    session.release('discard')
    await pool.end()
    return [error, 'body']
  },
  'triggers CONNECT_TIMEOUT': () =>
    connecting({ host: '127.0.0.1', port: small.port, connectionTimeoutMillis: 1, stream: silent })(),
  'triggers POOL_EXHAUSTED': async () => {
    const pool = new pg.Pool({ connectionString: world.url, max: 1 })
    const held = await pool.connect()
    const error = await caught(begunOn(pool, 20))
    held.release()
    await until('the late one is back', () => pool.idleCount === 1)
    await pool.end()
    return [error, 'waiting']
  },
  'triggers POOLING_UNSUPPORTED': async () => {
    const bouncer = await startPgbouncer({ mode: 'statement', upstream: small })
    const pool = new pg.Pool({ connectionString: bouncer.url('postgres') })
    const error = await caught(begun(engineOn(pool)))
    await pool.end()
    await bouncer.dispose()
    return [error, 'connecting']
  },
  'triggers pool-ended': async () => {
    const pool = new pg.Pool({ connectionString: world.url })
    await pool.end()
    return [await caught(begunOn(pool, 60_000)), 'waiting']
  },
  'triggers STORE_CLOSED': async () => {
    const pool = new pg.Pool({ connectionString: world.url })
    const db = postgres({ pool, name: 'closed' })
    await db.close()
    const error = await caught(db.transact(async () => 1))
    await pool.end()
    return [error, 'waiting']
  },
  'triggers TRANSACTION_ENDED_ELSEWHERE': async () => {
    const { behind, session, end } = await withClientBehind()
    await behind().query('rollback')
    const error = await caught(session.commit())
    await end()
    return [error, 'committing']
  },
}

// A socket that never connects.
function silent(): never {
  const { Duplex } = process.getBuiltinModule('node:stream')
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
  return Object.assign(socket, {
    connect: () => socket,
    setNoDelay() {},
    setKeepAlive() {},
    ref() {},
    unref() {},
  }) as never
}

describe('the table', () => {
  // Those whose test is in another file are looked for there by test/faults/evidence.test.ts.
  const rows = postgresClassification.flatMap((row) =>
    'triggered' in row.evidence && row.evidence.triggered.startsWith('triggers ')
      ? [[row.evidence.triggered, row] as const]
      : [],
  )

  it('has a trigger for every row that says so, and no other', () => {
    expect(Object.keys(triggers).sort()).toEqual(rows.map(([title]) => title).sort())
    expect(new Set(postgresClassification.map(({ sign }) => sign)).size).toBe(postgresClassification.length)
  })

  it.each(rows)('%s', async (title, row) => {
    const made = triggers[title] ?? []
    for (const trigger of Array.isArray(made) ? made : [made]) {
      const [error, phase] = await (trigger as Trigger)()
      const column = phase === 'waiting' ? 'connecting' : (phase as 'connecting' | 'body' | 'committing')
      const ruling = world.engine.classify(error, phase)
      const word = row[column]
      if (word === undefined) throw new Error(`The row says nothing of ${column}: ${String(error)}`)
      expect(ruling).toEqual({ ...rulingOf(word, ruling.sign), expired: row.expired })
      if (row.first && (error as Error).cause !== undefined) {
        expect([(error as { code?: unknown }).code, ruling.outcome]).toEqual([row.sign, 'aborted'])
        continue
      }
      expect([ruling.sign, error]).toEqual([expect.stringMatching(new RegExp(`^${row.sign.replace('*', '')}`)), error])
    }
  })
})
