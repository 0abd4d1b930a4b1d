// Prisma 7 as a callback domain, on the client that was generated for an app: every conformance case, and what becomes
// of the errors that it really throws. It owns its transaction, and hides the codes of the database behind its own.

import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import type { Isolation } from '../../../src/atomicity/index.js'
import {
  type CallbackDomain,
  type CallbackOptions,
  callback,
  callbackSignsOf,
} from '../../../src/stores/callback/index.js'
import {
  emitCases,
  keyCases,
  messageCases,
  operationCases,
  recordCases,
  rowCases,
  runConformanceCase,
  sequenceCases,
  transactionCases,
} from '../../../src/testing/index.js'
import { withClient } from '../../servers/postgres.js'
import { callbackWorld } from '../../stores/conformance/callback-world.js'
import type { Shop } from './shops.js'

/** What is used of a generated client, in a transaction. */
interface PrismaTransaction {
  $queryRawUnsafe<Rows>(text: string, ...values: unknown[]): Promise<Rows>
  readonly order: { create(options: { readonly data: object }): Promise<unknown> }
}

interface PrismaClient extends PrismaTransaction {
  $transaction<Result>(work: (tx: PrismaTransaction) => Promise<Result>, options: object): Promise<Result>
  $disconnect(): Promise<void>
}

interface Stack {
  readonly db: CallbackDomain<PrismaTransaction>
  readonly prisma: PrismaClient
  close(): Promise<void>
}

const levels = {
  'read-committed': 'ReadCommitted',
  'repeatable-read': 'RepeatableRead',
  serializable: 'Serializable',
} as const satisfies Record<Isolation, string>

// Limits that no machine is too busy for.
const patient = { deadline: '120s', connectionWait: '60s', bodyLimit: '60s', lockWait: '30s' } as const

const cases = [
  ...transactionCases,
  ...keyCases,
  ...rowCases,
  ...recordCases,
  ...operationCases,
  ...sequenceCases,
  ...messageCases,
  ...emitCases,
]

/** Prisma on a database, with the client of an app's folder. */
async function prismaStack(
  folder: string,
  url: string,
  more: Partial<CallbackOptions<PrismaTransaction>> = {},
): Promise<Stack> {
  const generated = pathToFileURL(join(folder, 'generated', 'client.js')).href
  const { PrismaClient } = await import(/* @vite-ignore */ generated)
  const { PrismaPg } = createRequire(join(folder, 'server.js'))('@prisma/adapter-pg')
  const prisma: PrismaClient = new PrismaClient({ adapter: new PrismaPg({ connectionString: url, max: 4 }) })
  const db = callback<PrismaTransaction>({
    name: 'prisma',
    ...patient,
    dialect: 'postgres',
    connections: 4,
    transaction: (work, { isolation }) =>
      prisma.$transaction(work, { isolationLevel: levels[isolation], maxWait: 60_000, timeout: 120_000 }),
    query: async (tx, text, values) => ({ rows: await tx.$queryRawUnsafe<unknown[]>(text, ...values) }),
    ...more,
  })
  return { db, prisma, close: () => prisma.$disconnect() }
}

/** Every conformance case, on the client of an app's folder. */
export function prismaConformance(folder: () => string): void {
  for (const subject of cases) {
    it(`${subject.id} ${subject.title}`, async () => {
      const world = await callbackWorld(inject('postgresUrl'), (url, defaults) => prismaStack(folder(), url, defaults))
      try {
        await runConformanceCase(subject, world)
      } finally {
        await world.close()
      }
    })
  }
}

type Insert = (tx: PrismaTransaction, item: string) => Promise<unknown>

const insertByModel: Insert = (tx, item) => tx.order.create({ data: { item, userId: 'ann', quantity: 1 } })
const insertByStatement: Insert = (tx, item) =>
  tx.$queryRawUnsafe("insert into orders (user_id, item, quantity) values ('ann', $1, 1)", item)
const inserts = [insertByModel, insertByStatement]

/** From here on an order for a code is refused by the server with that code. */
const refuseCodes = `
  create function refuse() returns trigger language plpgsql as $$
    begin raise exception 'planted' using errcode = new.item; end $$;
  create trigger refuse before insert on orders for each row when (new.item ~ '^[0-9A-Z]{5}$') execute function refuse()`

/** What becomes of errors of Prisma, on the shop of an app and the client of its folder. */
export function prismaErrors(folder: () => string, open: () => Promise<Shop>): void {
  let [shop, stack] = [] as unknown as [Shop, Stack]
  const url = (): string => shop.env['DATABASE_URL'] ?? ''
  beforeAll(async () => {
    shop = await open()
    stack = await prismaStack(folder(), url())
    await withClient(url(), (client) => client.query(refuseCodes))
  })
  afterAll(async () => {
    await stack?.db.close()
    await stack?.close()
    await shop?.remove()
  })
  const orderedIn = (item: string, work: (tx: PrismaTransaction, run: number) => Promise<unknown>): Promise<number> => {
    let runs = 0
    return stack.db.transact(async ({ db }) => {
      runs += 1
      await work(db, runs)
      await insertByModel(db, item)
      return runs
    })
  }

  it.each(['40001', '40P01', '55P03', '23514', '57014', '25P03', '53300'])('%s is seen below its own', async (code) => {
    for (const insert of inserts) {
      const error = await insert(stack.prisma, code).catch((thrown: unknown) => thrown)
      expect(callbackSignsOf(error), String(error)).toContain(code)
    }
  })

  it.each(['40001', '40P01', '55P03'])('the whole is repeated after %s', async (code) => {
    for (const insert of inserts) {
      expect(await orderedIn(`after ${code}`, async (tx, run) => run > 1 || insert(tx, code))).toBe(2)
    }
    expect([await shop.orders(code), await shop.orders(`after ${code}`)]).toEqual([0, 2])
  })

  it('the whole is repeated on another connection after the server ended one', async () => {
    const end = 'select pg_terminate_backend(pg_backend_pid())'
    expect(await orderedIn('after the end', async (tx, run) => run > 1 || tx.$queryRawUnsafe(end))).toBe(2)
    expect(await shop.orders('after the end')).toBe(1)
  })

  it('a message that is there already is MESSAGE_EXISTS', async () => {
    const emit = () => stack.db.transact((tx) => tx.emit({ id: 'one', type: 'order.placed', data: null }))
    await emit()
    await expect(emit()).rejects.toMatchObject({ code: 'MESSAGE_EXISTS' })
  })

  it('tables that are not there are MIGRATION_MISSING', async () => {
    const { db, close } = await prismaStack(folder(), url(), { prefix: 'absent_' })
    const emit = db.transact((tx) => tx.emit({ type: 'order.placed', data: null }))
    await expect(emit).rejects.toMatchObject({ code: 'MIGRATION_MISSING' })
    await db.close()
    await close()
  })

  it('the doctor looks at the database through it', async () => {
    const found = await stack.db.doctor()
    // The server of the tests does without both, and its keepalives are the system's.
    const usual = /^(FSYNC|FULL_PAGE_WRITES|KEEPALIVES|IDLE_IN_TRANSACTION)_/
    expect(found.map(({ code }) => code).filter((code) => !usual.test(code))).toEqual([])
  })
}
