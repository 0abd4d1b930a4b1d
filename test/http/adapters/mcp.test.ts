import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { idempotentTool, type ToolOptions } from '../../../src/http/mcp/index.js'
import { type MemoryTransaction, memory } from '../../../src/stores/memory/index.js'
import { gate } from '../../gate.js'

const shape = { amount: z.number(), key: z.string().optional() }

type Made = (tx: MemoryTransaction, amount: number) => Promise<{ content: { type: 'text'; text: string }[] }>

/** A client that is connected to a server with one tool, and the rows that the tool wrote. */
async function connected(more: Partial<ToolOptions<object>> = {}, made?: Made) {
  const db = memory({ name: 'shop' })
  db.table('payment', { unique: [['number']] })
  let runs = 0
  const options = { name: 'pay', principal: () => 'ada', key: { argument: 'key' }, log: () => undefined, ...more }
  const server = new McpServer({ name: 'shop', version: '1.0.0' })
  const tool = idempotentTool(
    db,
    options,
    async ({ tx, input }: { tx: MemoryTransaction; input: { amount: number } }) => {
      runs += 1
      await tx.insertOnce('payment', { number: runs }, ['number'])
      if (made !== undefined) return made(tx, input.amount)
      return { content: [{ type: 'text' as const, text: `paid ${input.amount}, run ${runs}` }] }
    },
  )
  server.registerTool('pay', { inputSchema: shape }, tool)
  const client = new Client({ name: 'agent', version: '1.0.0' })
  const [one, other] = InMemoryTransport.createLinkedPair()
  await Promise.all([server.connect(one), client.connect(other)])
  const call = (args: Record<string, unknown>, meta?: Record<string, unknown>) =>
    client.callTool({ name: 'pay', arguments: args, ...(meta === undefined ? {} : { _meta: meta }) })
  return { call, db, server, client, runs: () => runs, rows: () => db.rows('payment').length }
}

const textOf = (result: object) => (result as { content: { text: string }[] }).content[0]?.text

it('takes effect once, and gives a repeat the result of the first, marked', async () => {
  const { call, rows } = await connected()
  const first = await call({ amount: 5, key: 'k-1' })
  expect(first).toEqual({ content: [{ type: 'text', text: 'paid 5, run 1' }] })
  const again = await call({ key: 'k-1', amount: 5 })
  expect(again).toEqual({ ...first, _meta: { 'reprise/replayed': true } })
  expect(textOf(await call({ amount: 5, key: 'k-2' }))).toBe('paid 5, run 2')
  expect(rows()).toBe(2)
})

it('refuses other arguments under a key, a call without one, and a key that is none, in words and as data', async () => {
  const { call, rows } = await connected()
  await call({ amount: 5, key: 'k-1' })
  const reused = await call({ amount: 6, key: 'k-1' })
  expect(reused).toMatchObject({
    isError: true,
    structuredContent: { type: 'urn:reprise:problem:key-reused', status: 422, retryable: false },
    _meta: { 'reprise/problem': { type: 'urn:reprise:problem:key-reused' } },
  })
  expect(textOf(reused)).toContain('The key was used for a different request before.')
  const missing = await call({ amount: 6 })
  expect(missing).toMatchObject({ isError: true, structuredContent: { type: 'urn:reprise:problem:key-missing' } })
  expect(textOf(missing)).toMatch(/The key is in the argument key\.$/)
  expect(await call({ amount: 6, key: '' })).toMatchObject({
    structuredContent: { type: 'urn:reprise:problem:key-invalid' },
  })
  expect(rows()).toBe(1)
})

it('takes any text of 1 to 255 characters as a key, as models write them', async () => {
  const { call, rows } = await connected()
  const keys = ['my booking of room 1', 'my booking of room 2', 'zimmer-für-1', 'a,b', 'a, b', '"quoted', 'k;v=1', ' ']
  for (const [place, key] of keys.entries()) {
    expect((await call({ amount: 5, key }))._meta).toBeUndefined()
    expect((await call({ amount: 5, key }))._meta).toEqual({ 'reprise/replayed': true })
    expect(rows()).toBe(place + 1)
  }
  for (const key of ['x'.repeat(256), 'ü'.repeat(256)]) {
    expect(await call({ amount: 5, key })).toMatchObject({
      isError: true,
      structuredContent: { type: 'urn:reprise:problem:key-invalid' },
    })
  }
})

it('takes the key from _meta, as the host of a model sends it, whatever else is there', async () => {
  const { call, rows } = await connected({ key: { meta: 'reprise/idempotency-key' } })
  await call({ amount: 5 }, { 'reprise/idempotency-key': 'k-1', 'example/trace': 1 })
  const again = await call({ amount: 5 }, { 'reprise/idempotency-key': 'k-1', 'example/trace': 2 })
  expect(again._meta).toEqual({ 'reprise/replayed': true })
  const odd = await call({ amount: 5 }, { 'reprise/idempotency-key': 7 })
  expect(odd).toMatchObject({ isError: true, structuredContent: { type: 'urn:reprise:problem:key-invalid' } })
  expect(textOf(odd)).toMatch(/The key is in _meta: reprise\/idempotency-key\.$/)
  expect(rows()).toBe(1)
})

it('keeps apart what callers share a key for, and refuses nobody', async () => {
  let user: string | undefined = 'ada'
  const { call, rows } = await connected({ principal: () => user })
  await call({ amount: 5, key: 'k-1' })
  user = 'eve'
  expect((await call({ amount: 5, key: 'k-1' }))._meta).toBeUndefined()
  user = undefined
  expect(await call({ amount: 5, key: 'k-1' })).toMatchObject({
    isError: true,
    structuredContent: { type: 'urn:reprise:problem:unauthenticated' },
  })
  expect(rows()).toBe(2)
})

it('rolls back what the handler threw, leaves the key free, and keeps a result that says isError', async () => {
  let fails = true
  const { call, rows } = await connected({}, async () => {
    if (fails) throw new Error('no money today')
    return { content: [{ type: 'text', text: 'declined' }], isError: true }
  })
  const thrown = await call({ amount: 5, key: 'k-1' })
  expect([thrown.isError, textOf(thrown), rows()]).toEqual([true, 'no money today', 0])
  fails = false
  const kept = { content: [{ type: 'text', text: 'declined' }], isError: true }
  expect(await call({ amount: 5, key: 'k-1' })).toEqual(kept)
  expect(await call({ amount: 5, key: 'k-1' })).toEqual({ ...kept, _meta: { 'reprise/replayed': true } })
  expect(rows()).toBe(1)
})

it('lets a duplicate wait for the first one, or refuses it with when to come back', async () => {
  const work = gate()
  const entered = gate()
  const made: Made = async () => {
    entered.open()
    await work.opened
    return { content: [{ type: 'text', text: 'done' }] }
  }
  const refusing = await connected({ duplicates: 'refuse' }, made)
  const first = refusing.call({ amount: 5, key: 'k-1' })
  await entered.opened
  const second = await refusing.call({ amount: 5, key: 'k-1' })
  expect(second).toMatchObject({
    isError: true,
    structuredContent: { type: 'urn:reprise:problem:in-flight', retryable: true, retryAfterSeconds: 1 },
  })
  expect(textOf(second)).toMatch(/Call the tool again, with the same arguments and key, after 1 s\.$/)
  const waiting = await connected({}, made)
  const both = [waiting.call({ amount: 5, key: 'k-1' }), waiting.call({ amount: 5, key: 'k-1' })]
  work.open()
  expect((await Promise.all([first, ...both])).map(textOf)).toEqual(['done', 'done', 'done'])
  expect([refusing.runs(), waiting.runs()]).toEqual([1, 1])
})

it('says that a result was too large to keep, and does not carry the call out again', async () => {
  const { call, runs } = await connected({ largestAnswer: 10 })
  expect(textOf(await call({ amount: 5, key: 'k-1' }))).toBe('paid 5, run 1')
  expect(await call({ amount: 5, key: 'k-1' })).toMatchObject({
    isError: true,
    structuredContent: { type: 'urn:reprise:problem:answer-not-kept' },
  })
  expect(runs()).toBe(1)
})

it('keeps refusals out of the way of an output schema, and serves tools without arguments', async () => {
  const { server, client, db } = await connected()
  const options = { name: 'count', principal: () => 'ada', problemsIn: '_meta' } as const
  const count = idempotentTool(db, options, () => ({ content: [], structuredContent: { count: 1 } }))
  server.registerTool('count', { outputSchema: { count: z.number() } }, (extra) => count({}, extra))
  await client.listTools()
  const refused = await client.callTool({ name: 'count' })
  expect([refused.isError, refused.structuredContent]).toEqual([true, undefined])
  expect(refused._meta).toMatchObject({ 'reprise/problem': { type: 'urn:reprise:problem:key-missing' } })
  const keyed = { name: 'count', _meta: { 'reprise/idempotency-key': 'k-1' } }
  expect((await client.callTool(keyed)).structuredContent).toEqual({ count: 1 })
  expect((await client.callTool(keyed))._meta).toEqual({ 'reprise/replayed': true })
})

it('knows the arguments and the extra of a tool by the schema that it is registered with', () => {
  const db = memory({ name: 'typed' })
  const server = new McpServer({ name: 'shop', version: '1.0.0' })
  server.registerTool(
    'pay',
    { inputSchema: shape },
    idempotentTool(db, { name: 'pay', principal: (extra) => extra.authInfo?.clientId }, ({ input, tx, key, extra }) => {
      expectTypeOf(input.amount).toEqualTypeOf<number>()
      expectTypeOf(tx).toEqualTypeOf<MemoryTransaction>()
      expectTypeOf(key).toExtend<string | undefined>()
      expectTypeOf(extra.sessionId).toEqualTypeOf<string | undefined>()
      return { content: [] }
    }),
  )
})

it.each([
  [{ parse: () => undefined }, 'parse'],
  [{ key: { header: 'X-Key' } }, 'key'],
  [{ key: { argument: '' } }, 'key'],
  [{ key: { argument: 'a', meta: 'b' } }, 'key'],
  [{ problemsIn: 'text' }, 'problemsIn'],
])('refuses options that a tool does not have: %j', async (more, option) => {
  await expect(connected(more as never)).rejects.toMatchObject({ code: 'OPERATION_INVALID', details: { option } })
})

it('refuses what is no principal, no handler, no result, and arguments that JSON cannot hold', async () => {
  const db = memory({ name: 'odd' })
  const principal = () => 'ada'
  expect(() => idempotentTool(db, { name: 'a' } as never, () => ({ content: [] }))).toThrow(
    expect.objectContaining({ code: 'SCOPE_MISSING' }),
  )
  expect(() => idempotentTool(db, { name: 'b', principal }, undefined as never)).toThrow(
    expect.objectContaining({ code: 'OPERATION_INVALID', details: { option: 'handler' } }),
  )
  const keyed = { _meta: { 'reprise/idempotency-key': 'k-1' } }
  const odd = idempotentTool(db, { name: 'c', principal }, () => ({ text: 'no list' }) as never)
  await expect(odd({}, keyed)).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
  await expect(odd({ at: new Map() }, keyed)).rejects.toMatchObject({ code: 'JSON_VALUE_UNSUPPORTED' })
})
