// Tools over streamable HTTP, on every store: an agent whose connection ended before it heard the result calls again,
// in another session, and the effect is there once.

import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import type { RouteDomain } from '../../../src/http/core/index.js'
import { idempotentTool } from '../../../src/http/mcp/index.js'
import { memory } from '../../../src/stores/memory/index.js'
import { gate } from '../../gate.js'
import { listening } from '../../http/subject/listening.js'
import { postgresWorld } from '../postgres/world.js'
import { itemStore } from '../sqlite/files.js'

interface ToolStore<Handle> {
  readonly db: RouteDomain<Handle>
  readonly write: (tx: Handle, note: string) => Promise<unknown>
  readonly count: () => Promise<number>
}

const stores = {
  PostgreSQL: async (run: typeof effectOnce) => {
    const { db, raw } = await postgresWorld()
    return run({
      db,
      write: (tx, note) => tx.query('insert into item (id) values ($1)', [note]),
      count: async () => (await raw.query('select 1 from item')).rowCount ?? 0,
    })
  },
  SQLite: async (run: typeof effectOnce) => {
    const db = await itemStore()
    return run({
      db,
      write: (tx, note) => tx.query('insert into item (note) values (?)', [note]),
      count: async () => (await db.transact((tx) => tx.query('select id from item'))).rows.length,
    })
  },
  memory: async (run: typeof effectOnce) => {
    const db = memory({ name: 'items' })
    db.table('item', { unique: [['note']] })
    return run({
      db,
      write: (tx, note) => tx.insertOnce('item', { note }, ['note']),
      count: async () => db.rows('item').length,
    })
  },
} as const

async function effectOnce<Handle>({ db, write, count }: ToolStore<Handle>): Promise<void> {
  const entered = gate()
  const work = gate()
  const tool = idempotentTool(
    db,
    { name: 'order', principal: () => 'ada', key: { argument: 'key' } },
    async ({ tx, input }: { tx: Handle; input: { item: string } }) => {
      await write(tx, randomUUID())
      entered.open()
      await work.opened
      return { content: [{ type: 'text' as const, text: `ordered ${input.item}` }] }
    },
  )
  // A server and a transport for each request: no session is known to the next one.
  const served = await listening(
    createServer(async (request, response) => {
      const server = new McpServer({ name: 'shop', version: '1.0.0' })
      server.registerTool('order', { inputSchema: { item: z.string(), key: z.string() } }, tool)
      const transport = new StreamableHTTPServerTransport({})
      response.on('close', () => void transport.close())
      await server.connect(transport as Parameters<typeof server.connect>[0])
      await transport.handleRequest(request, response)
    }),
  )
  onTestFinished(() => served.close())
  const agent = async () => {
    const client = new Client({ name: 'agent', version: '1.0.0' })
    const transport = new StreamableHTTPClientTransport(new URL(served.url))
    await client.connect(transport as Parameters<typeof client.connect>[0])
    return client
  }
  const call = { name: 'order', arguments: { item: 'book', key: randomUUID() } }
  const first = await agent()
  const lost = first.callTool(call)
  lost.catch(() => undefined)
  await entered.opened
  await first.close()
  await expect(lost).rejects.toThrow(/closed/i)
  const second = await agent()
  const repeated = second.callTool(call)
  work.open()
  const result = await repeated
  expect(result.content).toEqual([{ type: 'text', text: 'ordered book' }])
  expect(result._meta).toEqual({ 'reprise/replayed': true })
  const other = await second.callTool({ name: 'order', arguments: { ...call.arguments, item: 'car' } })
  expect(other).toMatchObject({ isError: true, structuredContent: { status: 422, retryable: false } })
  expect(await count()).toBe(1)
  await second.close()
}

describe.each(Object.entries(stores))('a tool on %s', (_name, open) => {
  it('takes effect once, where the agent lost its connection and calls again', () => open(effectOnce))
})
