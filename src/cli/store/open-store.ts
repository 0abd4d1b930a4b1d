// The store that a command works on, opened from its address.

import { access } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Finding, RecordLimits } from '../../atomicity/index.js'
import type { RecordStore } from '../../idempotency/index.js'
import { type Duration, deadlineAfter, defined, RepriseError } from '../../kernel/index.js'
import type { LetterDomain } from '../../messaging/index.js'
import type { Budget } from '../../retry/index.js'
import type { Io } from '../io.js'
import { type GivenOptions, type OptionGroup, UsageError } from '../option-table.js'

/** What the commands need of a store. */
export interface CommandStore extends RecordStore {
  readonly messages: LetterDomain['messages']
  migrate(options: { readonly rename: boolean }): Promise<{
    readonly from: number
    readonly to: number
    readonly renamed?: number
  }>
  migrationSql(): string
  doctor(): Promise<readonly Finding[]>
  /** What a program has too that gives the store no budget of its own. */
  readonly budget: Budget | undefined
}

/** The options that say which store is meant. */
export const storeOptions: OptionGroup = {
  title: 'Store',
  options: [
    {
      name: 'url',
      kind: 'text',
      value: 'URL',
      text: 'postgres://… or sqlite:FILE (the environment’s DATABASE_URL, which keeps a password out of the list of processes)',
    },
    { name: 'prefix', kind: 'text', value: 'NAME', text: 'what the names of Reprise’s tables begin with (reprise_)' },
    {
      name: 'schema',
      kind: 'text',
      value: 'NAME',
      text: 'PostgreSQL: the schema they are in (public). A store with a pepper needs it in the environment’s REPRISE_PEPPER',
    },
  ],
}

/** Opens the store, runs the work, and closes it whatever happens. */
export async function withStore<Result>(
  given: GivenOptions,
  io: Io,
  work: (store: CommandStore) => Promise<Result>,
  { create = false }: { readonly create?: boolean } = {},
): Promise<Result> {
  const url = given.text('url') ?? io.environment?.('DATABASE_URL')
  if (url === undefined || url === '') throw new UsageError('--url is missing, and so is DATABASE_URL')
  const pepper = pepperIn(io.environment?.('REPRISE_PEPPER'))
  const names = defined({ prefix: given.text('prefix'), schema: given.text('schema'), pepper })
  const { store, close } = await open(url, names, create)
  try {
    return await work(store)
  } finally {
    await close()
  }
}

/** How long one call to the store may take. */
export function commandLimits(limit: Duration = '30s'): RecordLimits {
  return { deadline: deadlineAfter(limit) }
}

interface Names {
  readonly prefix?: string
  readonly schema?: string
  readonly pepper?: readonly string[]
}

// Never an option: lists of processes show those. No secret has a space in it.
function pepperIn(variable: string | undefined): readonly string[] | undefined {
  const secrets = variable?.split(/\s+/).filter((secret) => secret !== '') ?? []
  return secrets.length === 0 ? undefined : secrets
}

interface OpenStore {
  readonly store: CommandStore
  close(): Promise<void>
}

async function open(url: string, names: Names, create: boolean): Promise<OpenStore> {
  if (/^postgres(ql)?:\/\//.test(url)) return openPostgres(url, names)
  const file = /^sqlite:(?:\/\/)?(.+)$/s.exec(url)?.[1]
  if (file !== undefined) return openSqlite(file, names, create)
  throw new UsageError('--url is postgres://… or sqlite:FILE')
}

async function openPostgres(url: string, names: Names): Promise<OpenStore> {
  checkPostgresUrl(url)
  const { default: pg } = await import('pg').catch((cause: unknown) => {
    throw new RepriseError('RUNTIME_UNSUPPORTED', 'The package pg is not installed here.', { cause })
  })
  const { postgres } = await import('../../stores/postgres/index.js')
  const pool = new pg.Pool({ connectionString: url, max: 2, connectionTimeoutMillis: 10_000 })
  pool.on('error', () => undefined)
  const db = postgres({ pool, name: 'behind --url', connectionWait: '10s', ...names })
  const close = async (): Promise<void> => {
    await db.close()
    await pool.end()
  }
  return { store: db, close }
}

// Checked here: the driver's own error would repeat the address, with its password.
function checkPostgresUrl(url: string): void {
  try {
    new URL(url)
  } catch {
    throw new UsageError('--url cannot be read as an address')
  }
}

async function openSqlite(file: string, names: Names, create: boolean): Promise<OpenStore> {
  if (names.schema !== undefined) throw new UsageError('--schema is for PostgreSQL; SQLite has none')
  const looked = create ? dirname(resolve(file)) : file
  await access(looked).catch(() => {
    throw new UsageError(
      create ? 'the folder of the file is not there' : 'there is no such file; reprise migrate makes it',
    )
  })
  const { sqlite } = await import('../../stores/sqlite/index.js')
  const db = sqlite({ file, name: 'behind --url', ...defined({ prefix: names.prefix, pepper: names.pepper }) })
  return { store: db, close: () => db.close() }
}
