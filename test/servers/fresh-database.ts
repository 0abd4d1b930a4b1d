// A database of its own for each test file, so that files run side by side on one server.

import { randomUUID } from 'node:crypto'
import { afterAll, inject } from 'vitest'
import { withClient } from './postgres.js'

/** A database. */
export interface FreshDatabase {
  readonly name: string
  readonly url: string
  /** Drops it, and whoever is connected to it. */
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
        await client.query(`drop database if exists ${name} with (force)`)
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
