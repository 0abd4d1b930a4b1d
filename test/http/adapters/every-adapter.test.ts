import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Served } from '../subject/mounted.js'
import { openSink } from '../subject/sink.js'
import { adapterNames, startSubject } from '../subject/subject.js'

const folder = mkdtempSync(join(tmpdir(), 'reprise-adapters-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe.each(adapterNames)('the subject on %s', (adapter) => {
  let served: Served
  let letGoOn: (user: string) => void
  beforeAll(async () => {
    const sink = join(folder, `${adapter}-sink`)
    letGoOn = openSink(sink).letGoOn
    served = await startSubject(adapter, `sqlite:${join(folder, `${adapter}.db`)}`, { sink })
  })
  afterAll(() => served.close())

  const send = (
    path: string,
    {
      user = randomUUID(),
      key = randomUUID(),
      body = '{"amount":7}',
      ...init
    }: RequestInit & { user?: string; key?: string; body?: string } = {},
  ) =>
    fetch(served.url + path, {
      method: 'POST',
      body,
      redirect: 'manual',
      ...init,
      headers: {
        authorization: `Bearer ${user}`,
        'idempotency-key': key,
        'content-type': 'application/json',
        ...init.headers,
      },
    })
  const effects = async (user: string): Promise<number> => {
    const answer = await fetch(`${served.url}/effects`, { headers: { authorization: `Bearer ${user}` } })
    return ((await answer.json()) as { effects: number }).effects
  }

  it.each([
    ['/charges', 201],
    ['/charges/account-7', 201],
    ['/optional', 201],
    ['/strict', 201],
    ['/slow?ms=20', 201],
    ['/waiting?ms=20', 201],
    ['/redirect303', 303],
    ['/empty204', 204],
    ['/empty201', 201],
    ['/binary', 200],
    ['/stream', 200],
    ['/setcookie', 201],
    ['/gzip', 200],
    ['/multipart', 201],
    ['/leased/charges', 201],
    ['/leased/slow?ms=20', 201],
  ])('POST %s answers %i, and the same again without a second effect', async (path, status) => {
    const [user, key] = [randomUUID(), randomUUID()]
    const first = await send(path, { user, key })
    const bytes = Buffer.from(await first.arrayBuffer())
    expect([first.status, first.headers.get('idempotent-replayed')]).toEqual([status, null])
    const again = await send(path, { user, key })
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([status, 'true'])
    expect(Buffer.from(await again.arrayBuffer())).toEqual(bytes)
    for (const name of ['content-type', 'location', 'etag', 'content-encoding', 'content-length']) {
      if (path !== '/gzip' || name !== 'content-length')
        expect([name, again.headers.get(name)]).toEqual([name, first.headers.get(name)])
    }
    expect(await effects(user)).toBe(1)
  })

  it('answers 401 to nobody, and 404 where nothing is', async () => {
    expect((await fetch(`${served.url}/charges`, { method: 'POST' })).status).toBe(401)
    expect((await send('/nowhere')).status).toBe(404)
  })

  it('lets an error of the handler be answered by its framework, rolled back, and the repeat be carried out', async () => {
    const [user, key] = [randomUUID(), randomUUID()]
    expect((await send('/throw-after-effect', { user, key })).status).toBe(500)
    expect(await effects(user)).toBe(0)
    expect((await send('/throw-after-effect', { user, key })).status).toBe(201)
    expect(await effects(user)).toBe(1)
  })

  it.each([
    ['/leased/not-sent', [503, 201, 201], 1],
    ['/leased/throw-after-effect', [500, 201, 201], 1],
    ['/leased/ambiguous', [500, 409, 409], 1],
    ['/fail500', [500, 201, 201], 1],
    ['/limited', [429, 201, 201], 1],
    ['/fail422', [422, 422, 422], 0],
    ['/fail402', [402, 402, 402], 0],
    ['/large?bytes=600000', [200, 410, 410], 1],
  ])('POST %s answers %j in a row, with %i effects', async (path, statuses, count) => {
    const [user, key] = [randomUUID(), randomUUID()]
    const seen: number[] = []
    for (const _ of statuses) {
      const answer = await send(path, { user, key })
      seen.push(answer.status)
      const { length } = await answer.text()
      if (answer.status === 200) expect(length).toBe(600_000)
    }
    expect(seen).toEqual(statuses)
    expect(await effects(user)).toBe(count)
  })

  it('answers 202 before the work is done, tells its status to its caller alone, and then gives the outcome', async () => {
    const [user, key] = [randomUUID(), randomUUID()]
    const first = await send('/async/charges', { user, key })
    expect([first.status, first.headers.get('retry-after')]).toEqual([202, '1'])
    const at = first.headers.get('location') ?? ''
    expect(at).toMatch(/^\/async\/charges\/work\/sha256:[\w-]{43}$/)
    const ask = (who: string, query = '') =>
      fetch(served.url + at + query, { headers: { authorization: `Bearer ${who}` } })
    expect((await ask(user)).status).toBe(202)
    const repeat = await send('/async/charges', { user, key })
    expect([repeat.status, repeat.headers.get('location')]).toEqual([202, at])
    expect((await ask(randomUUID(), '?wait=5')).status).toBe(404)
    expect(await effects(user)).toBe(0)
    letGoOn(user)
    const done = await ask(user, '?wait=30')
    expect([done.status, done.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
    const text = await done.text()
    const again = await send('/async/charges', { user, key })
    expect([again.status, await again.text()]).toEqual([201, text])
    expect(await effects(user)).toBe(1)
  })

  it('knows versions', async () => {
    const user = randomUUID()
    const put = (headers: Record<string, string> = {}) =>
      send('/versions/7', { user, method: 'PUT', body: '{}', headers })
    expect((await put()).status).toBe(428)
    const made = await put({ 'if-none-match': '*' })
    expect(made.status).toBe(201)
    const tag = made.headers.get('etag') ?? ''
    expect((await put({ 'if-match': tag })).status).toBe(200)
    expect((await put({ 'if-match': tag })).status).toBe(412)
  })

  it('hands on what the caller says of itself', async () => {
    const answer = await send('/echo', { headers: { 'reprise-attempt': '3', 'reprise-deadline-ms': '9000' } })
    const { attempt, deadlineMs } = (await answer.json()) as { attempt: number; deadlineMs: number }
    expect(attempt).toBe(3)
    expect(deadlineMs).toBeGreaterThan(100)
    expect(deadlineMs).toBeLessThanOrEqual(8_950)
  })
})
