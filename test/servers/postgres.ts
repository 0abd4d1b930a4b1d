// Our own PostgreSQL server: a fresh data folder, a free loopback port, its own socket folder, stopped by the pid we
// started.

import { execFileSync } from 'node:child_process'
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { postgresOfVersion } from '../../tools/postgres-versions.mjs'
import { findPostgres } from '../../tools/servers.mjs'
import { demandServer, MissingServer, noPostgresUrl } from './missing.js'
import { freePort, isRoot, runAs, type ServerProcess, startServer } from './server-process.js'

/** The system's user that runs the servers when we are root; PostgreSQL refuses root. */
export const serverUser = 'postgres'

/** How to start a server. */
export interface PostgresOptions {
  /** Settings as in postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>
  /** A data folder that is there already. Default: a fresh one, removed when the server is stopped for good. */
  readonly dataFolder?: string
  /**
   * A major version from tools/postgres, installed by `npm run test:matrix`. Default: the one found on this machine.
   */
  readonly version?: number
  /** The folder with the programs to use, in place of a version. */
  readonly bin?: string
  /** Whether commits reach the disk. Off is quicker, and still safe against the end of a process. Default true. */
  readonly fsync?: boolean
}

/** One connection of a client, seen from the server. */
interface Backend {
  readonly pid: number
  readonly state: string | null
  readonly query: string
  readonly applicationName: string
}

/** A running server. */
export interface Postgres {
  /** For a superuser without a password, on the database `postgres`. */
  readonly url: string
  readonly host: string
  readonly port: number
  /** The postmaster's; another one after a restart. */
  readonly pid: number
  readonly dataFolder: string
  /** The folder with the programs that run it. */
  readonly bin: string
  /** The major version. */
  readonly version: number
  /** Everything the server has said so far. */
  log(): string
  /** The connections of clients, without the one that asks. */
  backends(): Promise<Backend[]>
  /** Sends a signal to one backend, after checking that it is a child of this server. */
  signalBackend(pid: number, signal: NodeJS.Signals): void
  /**
   * Stops the server; the data stays. `fast` rolls back and flushes everything, `immediate` leaves that to recovery.
   */
  stop(mode: 'fast' | 'immediate'): Promise<void>
  /** Ends the postmaster with SIGKILL; its children notice and follow. */
  kill9(): Promise<void>
  /**
   * Starts it again on the same data and port, whether it was stopped, killed or is running (then it is stopped
   * `fast`).
   */
  restart(): Promise<void>
  /** Stops it if it runs, and removes every folder that it made. */
  dispose(): Promise<void>
}

/** The programs to use. */
function programs(version: number | undefined): string {
  demandServer('PostgreSQL')
  const bin = version === undefined ? findPostgres() : postgresOfVersion(version)
  if (bin !== undefined) return bin
  if (version === undefined) throw new MissingServer('PostgreSQL')
  throw new Error(`PostgreSQL ${version} is not installed here: npm run test:matrix installs it.`)
}

const majorOf = (bin: string): number =>
  Number(/(\d+)/.exec(execFileSync(join(bin, 'postgres'), ['--version'], { encoding: 'utf8' }))?.[1])

const folderPrefix = 'reprise-pg-'

/** A folder for a server, which belongs to the user that runs it. */
export function serverFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), folderPrefix)))
  writeFileSync(join(folder, 'owner'), String(process.pid))
  ownedByServer(folder)
  return folder
}

/** Removes the folders of servers whose starter is gone: a run that was killed ends its servers but cannot clean up. */
export function removeAbandonedFolders(): void {
  for (const name of readdirSync(tmpdir()).filter((entry) => entry.startsWith(folderPrefix))) {
    const folder = join(tmpdir(), name)
    const owner = existsSync(join(folder, 'owner')) ? Number(readFileSync(join(folder, 'owner'), 'utf8')) : 0
    if (owner > 0 && !existsSync(`/proc/${owner}`)) rmSync(folder, { recursive: true, force: true })
  }
}

/** Gives a folder to the user that runs the servers. */
export function ownedByServer(path: string): void {
  if (!isRoot) return
  const id = (flag: string): number => Number(execFileSync('id', [flag, serverUser], { encoding: 'utf8' }))
  chownSync(path, id('-u'), id('-g'))
}

/** The lines of postmaster.pid: 1 the pid, 2 the data folder, 8 the state. */
function pidFile(dataFolder: string): readonly string[] {
  try {
    return readFileSync(join(dataFolder, 'postmaster.pid'), 'utf8').split('\n')
  } catch {
    return []
  }
}

/** Does something on a connection of its own. */
export async function withClient<Result>(url: string, work: (client: pg.Client) => Promise<Result>): Promise<Result> {
  if (url === noPostgresUrl) throw new MissingServer('PostgreSQL')
  const client = new pg.Client({ connectionString: url, application_name: 'reprise-test-servers' })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** The parent of a process, by /proc. */
function parentOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
}

/** A server that knows how to start, end and start again. */
class OwnPostgres implements Postgres {
  readonly host = '127.0.0.1'
  readonly version: number
  readonly dataFolder: string
  readonly bin: string
  readonly #folder: string
  readonly #settings: Readonly<Record<string, string>>
  #port = 0
  #process: ServerProcess | undefined

  constructor(bin: string, folder: string, dataFolder: string, settings: Readonly<Record<string, string>>) {
    this.bin = bin
    this.version = majorOf(bin)
    this.#folder = folder
    this.dataFolder = dataFolder
    this.#settings = settings
  }

  get port(): number {
    return this.#port
  }

  get url(): string {
    return `postgres://postgres@${this.host}:${this.#port}/postgres`
  }

  get pid(): number {
    return this.#process?.pid ?? 0
  }

  get #logPath(): string {
    return join(this.#folder, 'log')
  }

  log(): string {
    return existsSync(this.#logPath) ? readFileSync(this.#logPath, 'utf8') : ''
  }

  async #startOn(port: number): Promise<void> {
    // A path over 107 bytes is no address of a socket; TCP is enough then.
    const sockets = join(this.#folder, 's')
    const socketFolder = Buffer.byteLength(sockets) <= 80 ? sockets : ''
    const settings = {
      ...this.#settings,
      listen_addresses: this.host,
      port: String(port),
      unix_socket_directories: socketFolder,
    }
    const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const server = startServer(serverUser, join(this.bin, 'postgres'), ['-D', this.dataFolder, ...args], this.#logPath)
    this.#process = server
    const [ready, standby] = ['ready', 'standby']
    await server.ready(() => {
      const lines = pidFile(this.dataFolder)
      const state = lines[7]?.trim()
      return Number(lines[0]) === server.pid && (state === ready || state === standby)
    })
    this.#port = port
  }

  /** Starts on a port that is free; another process may take it first, so a few are tried. */
  async start(): Promise<void> {
    for (let left = 5; ; left -= 1) {
      const said = this.log().length
      try {
        return await this.#startOn(await freePort())
      } catch (error) {
        if (left === 0 || !/Address already in use|could not bind/.test(this.log().slice(said))) throw error
      }
    }
  }

  backends(): Promise<Backend[]> {
    return withClient(this.url, async (client) => {
      const { rows } = await client.query<Backend>(
        `select pid, state, query, application_name as "applicationName" from pg_stat_activity
         where backend_type = 'client backend' and pid <> pg_backend_pid() order by backend_start`,
      )
      return rows
    })
  }

  signalBackend(pid: number, signal: NodeJS.Signals): void {
    if (parentOf(pid) !== this.pid) throw new Error(`Process ${pid} is no backend of this server.`)
    process.kill(pid, signal)
  }

  /** A signal for the postmaster, after checking that the data folder says it is ours. */
  async #end(signal: NodeJS.Signals): Promise<void> {
    const server = this.#process
    if (server === undefined || server.ended) return
    const [pid, folder] = pidFile(this.dataFolder)
    if (Number(pid) !== server.pid || folder !== this.dataFolder) {
      throw new Error('postmaster.pid names another process or data folder; nothing was stopped.')
    }
    server.signal(signal)
    await server.end
  }

  stop(mode: 'fast' | 'immediate'): Promise<void> {
    return this.#end(mode === 'fast' ? 'SIGINT' : 'SIGQUIT')
  }

  kill9(): Promise<void> {
    return this.#end('SIGKILL')
  }

  async restart(): Promise<void> {
    await this.stop('fast')
    const untilMs = Date.now() + 120_000
    for (;;) {
      const said = this.log().length
      try {
        return await this.#startOn(this.#port)
      } catch (error) {
        // Children of a killed postmaster need a moment to end; until then they hold its shared memory and port.
        const transient = /shared memory block|Address already in use|could not bind|lock file/
        if (Date.now() > untilMs || !transient.test(this.log().slice(said))) throw error
      }
    }
  }

  async dispose(): Promise<void> {
    await this.stop('immediate')
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Starts a PostgreSQL. Whoever starts one disposes of it; it also ends with this process. */
export async function startPostgres(options: PostgresOptions = {}): Promise<Postgres> {
  const bin = options.bin ?? programs(options.version)
  const folder = serverFolder()
  try {
    mkdirSync(join(folder, 's'))
    ownedByServer(join(folder, 's'))
    const dataFolder = options.dataFolder ?? join(folder, 'data')
    if (options.dataFolder === undefined) {
      const args = ['-D', dataFolder, '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--locale=C', '--no-sync']
      await runAs(serverUser, join(bin, 'initdb'), args)
    }
    const quick = { fsync: 'off', full_page_writes: 'off' }
    const server = new OwnPostgres(bin, folder, dataFolder, {
      ...(options.fsync === false ? quick : {}),
      ...options.settings,
    })
    await server.start()
    return server
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
}
