// PgBouncer in front of our PostgreSQL: a pooler that assigns server connections per transaction or per statement.

import { rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { findPgbouncer } from '../../tools/servers.mjs'
import { demandServer, MissingServer } from './missing.js'
import { ownedByServer, serverFolder, serverUser } from './postgres.js'
import { freePort, startServer } from './server-process.js'

/** How to start a pooler. */
export interface PgbouncerOptions {
  /** When a server connection goes back to the pool. */
  readonly mode: 'transaction' | 'statement'
  /** Where the server is; its databases keep their names. */
  readonly upstream: { readonly host: string; readonly port: number }
  /** How many server connections a database has. Default 10. */
  readonly poolSize?: number
  /** Further settings of its [pgbouncer] section. */
  readonly settings?: Readonly<Record<string, string>>
}

/** A running pooler. */
export interface Pgbouncer {
  readonly host: string
  readonly port: number
  readonly pid: number
  /** The address of a database behind it. */
  url(database: string): string
  /** Everything it has said so far is in this file. */
  readonly logPath: string
  /** Ends it and removes its folder. */
  dispose(): Promise<void>
}

function configuration(options: PgbouncerOptions, folder: string, port: number): string {
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: String(port),
    unix_socket_dir: '',
    auth_type: 'trust',
    auth_file: join(folder, 'users'),
    pool_mode: options.mode,
    default_pool_size: String(options.poolSize ?? 10),
    ignore_startup_parameters: 'extra_float_digits',
    ...options.settings,
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`)
  const { host, port: serverPort } = options.upstream
  return `[databases]\n* = host=${host} port=${serverPort} user=postgres\n\n[pgbouncer]\n${lines.join('\n')}\n`
}

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })

/** Starts a pooler. Whoever starts one disposes of it; it also ends with this process. */
export async function startPgbouncer(options: PgbouncerOptions): Promise<Pgbouncer> {
  demandServer('PgBouncer')
  const program = findPgbouncer()
  if (program === undefined) throw new MissingServer('PgBouncer')
  const folder = serverFolder()
  const write = (name: string, text: string): string => {
    const path = join(folder, name)
    writeFileSync(path, text)
    ownedByServer(path)
    return path
  }
  write('users', '"postgres" ""\n')
  const logPath = write('log', '')
  const port = await freePort()
  const server = startServer(
    serverUser,
    program,
    [write('settings.ini', configuration(options, folder, port))],
    logPath,
  )
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  await server
    .ready(() => answers(port))
    .catch((error) => {
      remove()
      throw error
    })
  return {
    host: '127.0.0.1',
    port,
    pid: server.pid,
    logPath,
    url: (database) => `postgres://postgres@127.0.0.1:${port}/${database}`,
    async dispose() {
      server.signal('SIGKILL')
      await server.end
      remove()
    },
  }
}
