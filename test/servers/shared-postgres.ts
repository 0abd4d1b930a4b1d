// One PostgreSQL for all tests of stores, started once before them; each test file makes a database of its own in it.

import { existsSync } from 'node:fs'
import type { TestProject } from 'vitest/node'
import { removeAbandonedFolders, startPostgres } from './postgres.js'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The shared server, for a superuser; without fsync. */
    readonly postgresUrl: string
  }
}

/** Starts the server and gives its address to the tests; the function it returns ends it. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (existsSync('/proc')) removeAbandonedFolders()
  const server = await startPostgres({
    fsync: false,
    settings: { max_connections: '200', max_prepared_transactions: '50', wal_level: 'replica' },
  })
  project.provide('postgresUrl', server.url)
  return () => server.dispose()
}
