// A standby that follows a server of ours and can be promoted: what a failover needs.
//
// The copy is made with the server's own functions for backups, so that also those versions have one that come without
// pg_basebackup.

import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ownedByServer, type Postgres, serverFolder, serverUser, startPostgres, withClient } from './postgres.js'
import { runAs, until } from './server-process.js'

/** A running standby: its server, and what it does as one. */
export interface Standby {
  readonly server: Postgres
  /** Waits until it has applied everything that the primary has written so far. */
  caughtUp(): Promise<void>
  /** Stops following, so that what the primary writes from here on is lost in a failover. */
  detach(): Promise<void>
  /** Makes it a primary, on a timeline of its own. */
  promote(): Promise<void>
  /** Stops it and removes its folders. */
  dispose(): Promise<void>
}

/** Copies the data of a running server, as a base backup. The standby itself fetches the log from its start on. */
async function baseBackup(primary: Postgres, dataFolder: string): Promise<void> {
  await withClient(primary.url, async (client) => {
    await client.query(`select pg_backup_start('standby', true)`)
    // Files may vanish during the copy; the log brings back what counts.
    await runAs(serverUser, '/bin/sh', ['-c', 'cp -a "$1" "$2" || true', 'sh', primary.dataFolder, dataFolder])
    const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)')
    for (const name of ['postmaster.pid', 'postmaster.opts']) rmSync(join(dataFolder, name), { force: true })
    write(join(dataFolder, 'backup_label'), rows[0]?.labelfile ?? '')
  })
}

function write(path: string, text: string): void {
  writeFileSync(path, text)
  ownedByServer(path)
}

/** Starts a standby of a running server. Whoever starts one disposes of it. */
export async function startStandby(primary: Postgres, name = 'standby'): Promise<Standby> {
  const folder = serverFolder()
  const dataFolder = join(folder, 'data')
  await baseBackup(primary, dataFolder)
  write(join(dataFolder, 'standby.signal'), '')
  const connection = `host=${primary.host} port=${primary.port} user=postgres application_name=${name}`
  // In the file that ALTER SYSTEM writes, so that detach can take it away again.
  write(join(dataFolder, 'postgresql.auto.conf'), `primary_conninfo = '${connection}'\n`)
  const server = await startPostgres({ dataFolder, bin: primary.bin })
  const ask = <Row extends object>(url: string, text: string, values: unknown[] = []): Promise<Row> =>
    withClient(url, async (client) => (await client.query(text, values)).rows[0])
  return {
    server,
    async caughtUp() {
      const { lsn } = await ask<{ lsn: string }>(primary.url, 'select pg_current_wal_lsn()::text as lsn')
      const reached = 'select coalesce(pg_last_wal_replay_lsn() >= $1::pg_lsn, false) as yes'
      await until(async () => (await ask<{ yes: boolean }>(server.url, reached, [lsn])).yes, 'the standby catches up')
    },
    async detach() {
      await ask(server.url, `alter system set primary_conninfo = ''`)
      await ask(server.url, 'select pg_reload_conf()')
      const receivers = `select count(*)::int as n from pg_stat_wal_receiver`
      await until(async () => (await ask<{ n: number }>(server.url, receivers)).n === 0, 'the standby lets go')
    },
    async promote() {
      const { done } = await ask<{ done: boolean }>(server.url, 'select pg_promote(true, 120) as done')
      if (!done) throw new Error(`The standby was not promoted.\n${server.log()}`)
    },
    async dispose() {
      await server.dispose()
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
