// A database of its own for each test file, so that files run side by side on one server.

import { randomUUID } from 'node:crypto'
import { afterAll, inject } from 'vitest'
import { withClient } from './postgres.js'

/** A database. */
export interface FreshDatabase {
  readonly name: string
  readonly url: string
  /** Drops it, and whoever stays connected to it. */
  drop(): Promise<void>
}

/** Makes a database on a server. */
export async function createDatabase(serverUrl: string): Promise<FreshDatabase> {
  const name = `test_${randomUUID().replaceAll('-', '').slice(0, 16)}`
  await withClient(serverUrl, (client) => client.query(`create database ${name}`))
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return {
    name,
    url: url.href,
    drop: () =>
      withClient(serverUrl, async (client) => {
        const text = `drop database if exists ${name}`
        // The server waits up to 5 s for connections that are being closed. It would tell whoever closes them if it
        // ended them, and a pool that nobody listens to would throw that.
        await client.query(text).catch((error: { readonly code?: string }) => {
          if (error.code !== '55006') throw error
          return client.query(`${text} with (force)`)
        })
      }),
  }
}

/**
 * Makes a database on the server that all store tests share. It is dropped after the tests of the file or suite that
 * calls this.
 */
export async function freshDatabase(): Promise<FreshDatabase> {
  const database = await createDatabase(inject('postgresUrl'))
  afterAll(() => database.drop())
  return database
}
