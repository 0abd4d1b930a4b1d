// One PostgreSQL for all tests of stores, started once before them; each test file makes a database of its own in it.

import { existsSync } from 'node:fs'
import type { TestProject } from 'vitest/node'
import { MissingServer, noPostgresUrl } from './missing.js'
import { type Postgres, removeAbandonedFolders, startPostgres } from './postgres.js'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The shared server, for a superuser; without fsync. */
    readonly postgresUrl: string
  }
}

/** Starts the server and gives its address to the tests; the function it returns ends it. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (existsSync('/proc')) removeAbandonedFolders()
  const server = await startShared().catch((error) => {
    // Whoever asks for a database gets this error too, and is skipped or fails for it.
    if (error instanceof MissingServer) return undefined
    throw error
  })
  project.provide('postgresUrl', server?.url ?? noPostgresUrl)
  return async () => server?.dispose()
}

function startShared(): Promise<Postgres> {
  return startPostgres({
    fsync: false,
    settings: { max_connections: '200', max_prepared_transactions: '50', wal_level: 'replica' },
  })
}
