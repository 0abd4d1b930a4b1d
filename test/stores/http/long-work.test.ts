// Work that goes on behind its 202, in processes that are killed between the 202 and the end: the status says what can
// be known, a repeat takes the work up, and the effect is there once.

import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { leasedRoute, reply } from '../../../src/http/core/index.js'
import { rerunKeyed } from '../../../src/idempotency/index.js'
import { mintKey } from '../../../src/identity/index.js'
import { memory } from '../../../src/stores/memory/index.js'
import { gate } from '../../gate.js'
import { factsOf, read, send, usual } from '../../http/route-world.js'
import { type SubjectProgram, subjectProgram } from '../../http/subject/process.js'
import { openSink } from '../../http/subject/sink.js'
import { createDatabase } from '../../servers/fresh-database.js'

const folder = mkdtempSync(join(tmpdir(), 'reprise-long-work-'))
const sink = openSink(join(folder, 'sink'))
let program: SubjectProgram
beforeAll(async () => {
  program = await subjectProgram()
})
afterAll(async () => {
  await program.close()
  rmSync(folder, { recursive: true, force: true })
})

const databases = {
  PostgreSQL: async () => {
    const database = await createDatabase(inject('postgresUrl'))
    afterAll(() => database.drop())
    return database.url
  },
  SQLite: async () => `sqlite:${join(folder, 'work.db')}`,
} as const

describe.each(Object.entries(databases))('work behind a 202 on %s', (_name, open) => {
  let url: string
  beforeAll(async () => {
    url = await open()
  })
  const start = () => program.start('node', url, { sink: join(folder, 'sink') })

  it.each([
    // Killed before its effect: whoever runs it again sends the same key to the receiver.
    ['/async/charges', 0],
    // Killed after its effect, which nobody has told the store of: the receiver is asked.
    ['/async/asked', 1],
  ])('POST %s, killed with %i effects: unknown once the lease is over, taken up by a repeat', async (path, before) => {
    const user = randomUUID()
    const headers = { authorization: `Bearer ${user}`, 'idempotency-key': randomUUID() }
    const post = (base: string) =>
      fetch(base + path, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: '{"amount":7}',
      })
    const first = await start()
    const accepted = await post(first.url)
    expect(accepted.status).toBe(202)
    const at = accepted.headers.get('location') ?? ''
    await expect.poll(() => sink.count(user)).toBe(before)
    await first.kill()

    const second = await start()
    const ask = (query = '') => fetch(second.url + at + query, { headers })
    const seen: number[] = []
    await expect
      .poll(async () => {
        const { status } = await ask()
        seen.push(status)
        return status
      })
      .toBe(409)
    // Until the lease is over nobody can know that its owner is gone.
    expect(new Set(seen.slice(0, -1))).toEqual(new Set(seen.length > 1 ? [202] : []))
    const unknown = await ask('?wait=10')
    expect([unknown.status, await unknown.json()]).toEqual([
      409,
      expect.objectContaining({ type: 'urn:reprise:problem:outcome-unknown', retryable: true }),
    ])
    expect(sink.count(user)).toBe(before)

    sink.letGoOn(user)
    const again = await post(second.url)
    expect([again.status, again.headers.get('location')]).toEqual([202, at])
    const done = await ask('?wait=30')
    expect([done.status, done.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
    const text = await done.text()
    const replayed = await post(second.url)
    expect([replayed.status, await replayed.text()]).toEqual([201, text])
    expect(sink.count(user)).toBe(1)
    await second.kill()
    expect(second.said()).toBe('')
  })

  it('is asked for in one process while it goes on in another, and outlives the caller who began it', async () => {
    const user = randomUUID()
    const headers = { authorization: `Bearer ${user}`, 'idempotency-key': randomUUID() }
    const [first, second] = [await start(), await start()]
    const leaving = new AbortController()
    const accepted = await fetch(`${first.url}/async/charges`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'reprise-deadline-ms': '5000' },
      body: '{"amount":7}',
      signal: leaving.signal,
    })
    const at = accepted.headers.get('location') ?? ''
    leaving.abort()
    expect((await fetch(second.url + at, { headers })).status).toBe(202)
    const waiting = fetch(`${second.url + at}?wait=30`, { headers })
    sink.letGoOn(user)
    expect((await waiting).status).toBe(201)
    expect(sink.count(user)).toBe(1)
    await Promise.all([first.kill(), second.kill()])
  })
})

it('work behind a 202 in memory: begun, asked for, drained, replayed', async () => {
  const db = memory({ name: 'shop' })
  const work = gate()
  const options = { ...usual, respond: 'async', recover: rerunKeyed('1h') } as const
  const route = leasedRoute(db, options, async () => {
    await work.opened
    return reply(201, 'done')
  })
  const key = mintKey()
  const { status, headers } = await send(route, { key })
  const target = headers['location'] ?? ''
  expect(status).toBe(202)
  const ask = async (query = '') =>
    read(await route.status.handle(factsOf({ method: 'GET', target: target + query }), { user: 'ada' }))
  expect((await ask()).status).toBe(202)
  const waiting = ask('?wait=20')
  work.open()
  expect(await waiting).toMatchObject({ status: 201, text: 'done' })
  expect(await route.drain()).toBe(0)
  expect(await send(route, { key })).toMatchObject({ status: 201, headers: { 'idempotent-replayed': 'true' } })
  await db.close()
})
