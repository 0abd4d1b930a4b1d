// A store that goes away, comes back, or is locked while requests come in: refused in bounded time, nothing lost, nothing twice, nothing hangs.

import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { HttpCaseClient, SubjectAnswer } from '../../../src/testing/index.js'
import { type Postgres, startPostgres } from '../../servers/postgres.js'
import { until } from '../../servers/server-process.js'
import { bundled, insist, openStage, type Serving, type Stage, storeNames } from './stage.js'

let program: string
let server: Postgres
beforeAll(async () => {
  program = await bundled()
  server = await startPostgres({ fsync: false })
  afterAll(() => server.dispose())
})

/** Intents of one user, all pressed on until they are carried out, some at a time; every answer on the way. */
async function pressOn(client: HttpCaseClient, intents: number, atOnce: number) {
  const user = client.user()
  const answers: SubjectAnswer[] = []
  let left = intents
  let done = 0
  const work = async (): Promise<void> => {
    while (left-- > 0) {
      const key = client.key()
      const { last, before } = await insist(user, () => user.post('/charges', key))
      answers.push(last, ...before)
      done += 1
    }
  }
  const end = Promise.all(Array.from({ length: atOnce }, work))
  void end.catch(() => undefined)
  return { user, answers, end, done: () => done }
}

function orderly(answers: readonly SubjectAnswer[]): void {
  for (const answer of answers) {
    expect([201, 409, 503, 500]).toContain(answer.status)
    // 500 only where the fate of a COMMIT could not be learnt: said so, and settled by the repeat.
    if (answer.status === 500)
      expect((answer.json() as { type: string }).type).toBe('urn:reprise:problem:outcome-unknown')
    if (answer.status !== 201) expect(Number(answer.header('Retry-After'))).toBeGreaterThan(0)
  }
}

describe.each(storeNames)('on %s', (name) => {
  let stage: Stage
  let serving: Serving
  beforeAll(async () => {
    stage = await openStage(program, name, name === 'SQLite' ? undefined : server.url)
    serving = await stage.start()
  })

  it('http-76 a locked store: 503 with Retry-After in bounded time, no effect, and then everything as usual', async () => {
    const hurried = await stage.start({ deadline: '3s' })
    const client = stage.client(hurried)
    const [user, key] = [client.user(), client.key()]
    const letGo = await stage.lock()
    const answers = await Promise.all([user.post('/charges', key), user.post('/leased/charges', key)])
    await letGo()
    for (const answer of answers) {
      expect(answer.status).toBe(503)
      expect(answer.tookMs).toBeLessThan(4_500)
      expect(Number(answer.header('Retry-After'))).toBeGreaterThan(0)
    }
    expect(await user.effects()).toBe(0)
    // A claim that was on its way when its request was refused may still have got in: then it has to run out.
    for (const path of ['/charges', '/leased/charges']) await insist(user, () => user.post(path, key))
    expect(await user.effects()).toBe(2)
    await hurried.kill()
  })

  it('http-76 locked again and again under load: nothing is lost, and nothing is there twice', async () => {
    const client = stage.client(serving)
    const { user, answers, end, done } = await pressOn(client, 60, 6)
    let locks = 0
    while (done() < 40) {
      const letGo = await stage.lock()
      await new Promise((resolve) => setTimeout(resolve, 150))
      await letGo()
      locks += 1
      const seen = done()
      await until(() => done() > seen + 4, 'it goes on')
    }
    await end
    orderly(answers)
    expect([locks > 2, await user.effects()]).toEqual([true, 60])
  })

  it('http-08e what is no key, and a stranger, are refused without the store', async () => {
    const client = stage.client(serving)
    const user = client.user()
    const letGo = await stage.lock()
    const answers = [
      await user.post('/charges', 'x'.repeat(256)),
      await user.post('/charges', undefined),
      await user.post('/charges', ['a', 'b']),
      await client.nobody.post('/charges', client.key()),
    ]
    await letGo()
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 400, 401])
    for (const { tookMs } of answers) expect(tookMs).toBeLessThan(1_000)
  })

  it('http-45c 500 duplicates at once: one effect, none of them fails, and connections stay few', async () => {
    const client = stage.client(serving)
    const [user, key] = [client.user(), client.key()]
    const answers = Promise.all(Array.from({ length: 500 }, () => user.post('/slow?ms=500', key)))
    const most = name === 'SQLite' ? 0 : await mostConnections(answers)
    const ends = await answers
    expect(ends.filter(({ status }) => status !== 201 && status !== 409)).toEqual([])
    const successes = ends.filter(({ status }) => status === 201)
    expect(successes.filter((answer) => answer.header('Idempotent-Replayed') !== 'true')).toHaveLength(1)
    expect([new Set(successes.map(({ body }) => body.toString())).size, await user.effects()]).toEqual([1, 1])
    expect(most).toBeLessThanOrEqual(22)
  })
})

/** The most connections to the server while something is under way. */
async function mostConnections(work: Promise<unknown>): Promise<number> {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  let [most, isOver] = [0, false]
  void work.finally(() => {
    isOver = true
  })
  while (!isOver) {
    const { rows } = await client.query<{ n: string }>(
      "select count(*) as n from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()",
    )
    most = Math.max(most, Number(rows[0]?.n))
  }
  await client.end()
  expect(most).toBeGreaterThan(0)
  return most
}

it('http-75 the store is stopped and started again under load: refused meanwhile, nothing lost, nothing twice', async () => {
  const stage = await openStage(program, 'PostgreSQL', server.url)
  const serving = await stage.start()
  const client = stage.client(serving)
  const [user, key] = [client.user(), client.key()]
  const load = await pressOn(client, 200, 6)
  for (const mode of ['fast', 'immediate'] as const) {
    const seen = load.done()
    await until(() => load.done() > seen + 20, 'it goes on')
    await server.stop(mode)
    const down = await user.post('/charges', key)
    expect([down.status, Number(down.header('Retry-After')) > 0, down.tookMs < 12_000]).toEqual([503, true, true])
    // Before the store: what is no key, and who is nobody.
    expect((await user.post('/charges', 'x'.repeat(256))).status).toBe(400)
    expect((await client.nobody.post('/charges', key)).status).toBe(401)
    await server.restart()
  }
  await load.end
  orderly(load.answers)
  const refused = load.answers.filter(({ status }) => status === 503).length
  expect([refused > 0, await load.user.effects(), await user.effects()]).toEqual([true, 200, 0])
  expect((await user.post('/charges', key)).status).toBe(201)
  expect(await user.effects()).toBe(1)
})
