// Files, drivers and other processes for the tests of the store in SQLite.

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import Database from 'libsql'
import { afterAll, afterEach } from 'vitest'
import { systemClock, systemRandom } from '../../../src/kernel/index.js'
import { SqliteEngine } from '../../../src/stores/sqlite/engine.js'
import { type SqliteClient, type SqliteDomain, type SqliteOptions, sqlite } from '../../../src/stores/sqlite/index.js'
import { bundleInto } from '../../bundle.js'
import { demandServer } from '../../servers/missing.js'

const folder = mkdtempSync(join(tmpdir(), 'reprise-sqlite-'))
const opened: { close(): unknown }[] = []
const children = new Set<ChildProcess>()
let files = 0

afterEach(async () => {
  for (const child of children) child.kill('SIGKILL')
  for (const store of opened.splice(0)) await store.close()
})
const leftovers: string[] = [folder]
afterAll(() => {
  for (const path of leftovers) rmSync(path, { recursive: true, force: true })
})

/** The path of a file that is not there yet. */
export function freshFile(): string {
  files += 1
  return join(folder, `${files}.db`)
}

/** A connection that is not Reprise's, with rows to look at. */
export function stranger(file: string): Database.Database {
  const handle = new Database(file)
  opened.push({ close: () => handle.open && handle.close() })
  return handle
}

/** What a stranger sees in a table. */
export function rowsIn(file: string, text: string): unknown[] {
  const handle = new Database(file)
  try {
    return handle.prepare(text).raw().all([]) as unknown[]
  } finally {
    handle.close()
  }
}

/** A migrated domain over a file, with a table `item (id, note unique, state, last_command)`. */
export async function itemStore(
  file: string = freshFile(),
  options: Partial<SqliteOptions<SqliteClient>> = {},
): Promise<SqliteDomain<SqliteClient>> {
  const { bind: _, ...rest } = options
  const db = sqlite({ name: 'items', open: () => new Database(file), ...rest })
  opened.push(db)
  await db.migrate()
  await db.transact((tx) => {
    tx.db.exec(
      'CREATE TABLE IF NOT EXISTS item (id INTEGER PRIMARY KEY, note TEXT UNIQUE, state TEXT, last_command TEXT)',
    )
  })
  return db
}

/** An engine without its runner. */
export function engineOn(
  file: string,
  options: Partial<ConstructorParameters<typeof SqliteEngine<SqliteClient>>[0]> = {},
): SqliteEngine<SqliteClient> {
  const engine = new SqliteEngine<SqliteClient>({
    name: 'items',
    open: () => new Database(file),
    bind: (client) => client,
    clock: systemClock,
    random: systemRandom,
    ...options,
  })
  opened.push(engine.connections)
  return engine
}

/** A process that can be talked to, line by line. */
export interface Talker {
  readonly child: ChildProcess
  /** The next line it prints; undefined when it has ended. */
  line(): Promise<string | undefined>
  /** Sends it a line. */
  tell(text: string): void
  /** Waits for its end and gives all lines that were not asked for. */
  rest(): Promise<string[]>
}

/** Starts one of the programs in `processes`, on this Node or by another command line. */
export function start(
  program: string,
  args: readonly string[],
  through: readonly string[] = [process.execPath],
): Talker {
  const path = fileURLToPath(new URL(`./processes/${program}`, import.meta.url))
  const [command = '', ...before] = through
  const child = spawn(command, [...before, path, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
  children.add(child)
  child.once('exit', () => children.delete(child))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const line = async (): Promise<string | undefined> => {
    const next = await lines.next()
    return next.done === true ? undefined : next.value
  }
  return {
    child,
    line,
    tell: (text) => {
      child.stdin.write(`${text}\n`)
    },
    rest: async () => {
      const found: string[] = []
      for (let next = await line(); next !== undefined; next = await line()) found.push(next)
      return found
    },
  }
}

/** What a program did under strace: its lines, and the calls that it made on the log. */
export interface Traced {
  readonly lines: readonly string[]
  readonly syncs: number
  readonly writes: number
  /** How many syncs a failure was put into. */
  readonly failed: number
}

/** Runs a program with every call on the log of its file counted, and a failure put into one of them where asked for. */
export async function traced(
  program: string,
  file: string,
  args: readonly string[],
  failure?: string,
): Promise<Traced> {
  demandServer('strace')
  const trace = `${file}.trace`
  const inject = failure === undefined ? [] : ['-e', `inject=${failure}`]
  const calls = ['-P', `${file}-wal`, '-e', 'trace=fsync,fdatasync,pwrite64,write']
  const strace = ['strace', '-f', '-qq', ...calls, ...inject, '-o', trace, process.execPath]
  const lines = await start(program, [await bundle(), file, ...args], strace).rest()
  const made = readFileSync(trace, 'utf8')
  const syncs = made.match(/sync\(.*/g) ?? []
  const writes = made.match(/write(64)?\(.*/g) ?? []
  const failed = syncs.filter((line) => line.includes('INJECTED')).length
  return { lines, syncs: syncs.length, writes: writes.length, failed }
}

let bundled: Promise<string> | undefined

/**
 * The sources as JavaScript for other processes: the path of a folder with `index.js`, `engine.js`, `kernel.js` and
 * `identity.js`.
 */
export function bundle(): Promise<string> {
  bundled ??= bundleSources(fileURLToPath(new URL(`../../../.cache/sqlite-processes-${process.pid}`, import.meta.url)))
  return bundled
}

async function bundleSources(outdir: string): Promise<string> {
  leftovers.push(outdir)
  const source = (path: string): string => fileURLToPath(new URL(`../../../src/${path}`, import.meta.url))
  await bundleInto(outdir, {
    index: source('stores/sqlite/index.ts'),
    engine: source('stores/sqlite/engine.ts'),
    kernel: source('kernel/index.ts'),
    identity: source('identity/index.ts'),
  })
  return outdir
}
