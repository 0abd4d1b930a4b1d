// Processes that are killed, stopped and woken up again in the middle of requests, and windows that end: the cases that
// take more than an address.

import { readdirSync, readFileSync } from 'node:fs'
import { beforeAll, expect, inject, it } from 'vitest'
import { atomicRoute, leasedRoute, reply } from '../../../src/http/core/index.js'
import { hold, purge } from '../../../src/idempotency/index.js'
import { systemClock, uuidv7Source } from '../../../src/kernel/index.js'
import { controlledHttpCases, faultEnvironment, type SubjectAnswer } from '../../../src/testing/index.js'
import { until } from '../../servers/server-process.js'
import type { Serving } from '../subject/serving.js'
import { onStoresInTurn, printedTable } from './cells.js'
import { bundled, insist, openStage, type Stage } from './stage.js'

let program: string
beforeAll(async () => {
  program = await bundled()
})

const isReplay = (answer: SubjectAnswer): boolean => answer.header('Idempotent-Replayed') === 'true'
const madeBy = (answer: SubjectAnswer): string | undefined => answer.header('Content-Language')?.slice('x-'.length)
const pidOf = ({ child }: Serving): string => String(child.pid)
const charge = '{"amount":5}'

onStoresInTurn(printedTable('processes that are killed and stopped, and windows that end'), (on) => {
  let stage: Stage
  let steady: Serving
  beforeAll(async () => {
    stage = await openStage(program, { ...on, postgresUrl: inject('postgresUrl') })
    steady = await stage.start()
    return stage.close
  })

  const isClaimed = ({ said }: Serving) => until(() => said().includes('reprise.operation.claimed'), 'it is claimed')

  it.each(['/slow?ms=800', '/leased/slow?ms=800'])(
    'http-52 %s: killed in the middle, a request is refused until its claim is over, and then carried out once',
    async (path) => {
      let refused = false
      // A machine that stands still for longer than the lease lasts proves nothing: then it is done once more.
      for (let round = 1; !refused; round++) {
        expect(round).toBeLessThanOrEqual(5)
        refused = await killedIn(path)
      }
    },
  )

  // Whether a repeat came early enough to be refused; always, where nothing outlives the process.
  async function killedIn(path: string): Promise<boolean> {
    const victim = await stage.start()
    const client = stage.client(victim, steady)
    const [user, key] = [client.user(), client.key()]
    const sentMs = performance.now()
    const cut = user.send({ path, key, body: charge, at: 0 }).catch((error: Error) => error)
    await isClaimed(victim)
    await victim.kill()
    expect(await cut).toBeInstanceOf(Error)
    const startMs = performance.now()
    const repeat = { path, key, body: charge, at: 1 }
    let firstMs: number | undefined
    const { last, before } = await insist(user, async () => {
      const answer = await user.send(repeat)
      firstMs ??= performance.now()
      return answer
    })
    expect([madeBy(last), isReplay(last)]).toEqual([pidOf(steady), false])
    // A lease of 1 s and its margin, and then the 800 ms of the handler; a transaction ends with its process.
    expect(performance.now() - startMs).toBeLessThan(60_000)
    for (const answer of before) {
      expect(answer.status).toBe(409)
      expect(Number(answer.header('Retry-After'))).toBeLessThanOrEqual(2)
    }
    const again = await user.send(repeat)
    expect([again.body.equals(last.body), isReplay(again)]).toEqual([true, true])
    expect(await stage.client(steady).user(user.name).effects()).toBe(1)
    if (!path.startsWith('/leased') || before.length > 0) return true
    // Not refused: then the lease was over, and the 800 ms came on top.
    expect((firstMs ?? sentMs) - sentMs).toBeGreaterThan(1_800)
    return false
  }

  it('http-54 PT5, PT5b: a process that stood still past its lease writes nothing: repeats get the answer of its successor', async () => {
    const owner = await stage.start()
    const client = stage.client(owner, steady)
    const [user, key] = [client.user(), client.key()]
    const path = '/leased/slow?ms=700'
    const late = user.send({ path, key, body: charge, at: 0 })
    await isClaimed(owner)
    owner.child.kill('SIGSTOP')
    const { last, before } = await insist(user, () => user.send({ path, key, body: charge, at: 1 }))
    for (const answer of before) expect([409, 503]).toContain(answer.status)
    expect([madeBy(last), isReplay(last)]).toEqual([pidOf(steady), false])
    owner.child.kill('SIGCONT')
    const zombie = await late
    // It may be told what became of the intent, or that this is not known to it; its own answer counts for nothing.
    expect(madeBy(zombie)).not.toBe(pidOf(owner))
    for (const at of [0, 1]) {
      const again = await user.send({ path, key, body: charge, at })
      expect([again.status, madeBy(again), isReplay(again)]).toEqual([201, pidOf(steady), true])
      expect(again.body.equals(last.body)).toBe(true)
    }
    expect(await user.effects()).toBe(1)
    await owner.kill()
  })

  it('http-54 a transaction that stands still is waited for, in bounded time, and has its effect once', async () => {
    const owner = await stage.start()
    const client = stage.client(owner, steady)
    const [user, key] = [client.user(), client.key()]
    const send = (at: number) => user.send({ path: '/slow?ms=400', key, body: charge, at })
    const late = send(0)
    await isClaimed(owner)
    owner.child.kill('SIGSTOP')
    // In SQLite the one that stands still holds the lock of the file; in PostgreSQL the row of the claim.
    const meanwhile = await send(1)
    expect(meanwhile.tookMs).toBeLessThan(60_000)
    expect([201, 409, 503]).toContain(meanwhile.status)
    if (meanwhile.status !== 201) expect(Number(meanwhile.header('Retry-After'))).toBeGreaterThan(0)
    owner.child.kill('SIGCONT')
    const first = await late
    const { last } = await insist(user, () => send(1))
    if (first.status === 201) expect(first.body.equals(last.body)).toBe(true)
    expect(await user.effects()).toBe(1)
    await owner.kill()
  })

  it('http-57 the completion cannot be written after the effect: nobody has the effect again, and the outcome is found', async () => {
    const client = stage.client(steady)
    const [user, key] = [client.user(), client.key()]
    // The receiver of this route does not know keys: a second call would be a second effect.
    const path = '/leased/throw-after-effect'
    const owner = await stage.start({}, faultEnvironment('leased.before-lose', 'hang'))
    const hung = stage.client(owner).user(user.name).post(path, key)
    void hung.catch(() => undefined)
    await until(
      () => owner.said().includes('reprise-fault leased.before-lose'),
      'the effect is there, its outcome is not',
    )
    expect(await user.effects()).toBe(1)
    expect((await user.post(path, key)).status).toBe(409)
    expect(await user.effects()).toBe(1)
    await owner.kill()
    const { last, before } = await insist(user, () => user.post(path, key))
    for (const answer of before) expect(answer.status).toBe(409)
    expect([last.status, await user.effects()]).toEqual([201, 1])
  })

  it('http-57 the store is locked when the completion is to be written: the same', async () => {
    // A machine that stands still until the lease is over proves nothing, since nobody acts on it then: once more.
    for (let round = 1; !(await lockedAtCompletion()); round++) expect(round).toBeLessThanOrEqual(5)
  })

  // False: the effect was not there when its request had ended.
  async function lockedAtCompletion(): Promise<boolean> {
    const owner = await stage.start()
    const client = stage.client(owner, steady)
    const [user, key] = [client.user(), client.key()]
    const send = (at: number) => user.send({ path: '/leased/slow?ms=300', key, body: charge, at })
    const running = send(0)
    await isClaimed(owner)
    const letGo = await stage.lock()
    let first: SubjectAnswer
    try {
      // Past the lease and its grace: whoever could not write it has given up.
      first = await running
      if ((await user.effects()) === 0) return false
    } finally {
      await letGo()
    }
    expect([first.status >= 400, isReplay(first)]).toEqual([true, false])
    const { last, before } = await insist(user, () => send(1))
    for (const answer of before) expect([409, 503]).toContain(answer.status)
    // Made by whoever came after, or by the first one, where its writing was on its way and was let in with the others.
    expect([pidOf(steady), pidOf(owner)]).toContain(madeBy(last))
    expect(await user.effects()).toBe(1)
    await owner.kill()
    return true
  }

  it('http-62 PT9, HI6: a repeat within the window is a replay, and after it is carried out anew', async () => {
    let replays = 0
    // A machine on which no repeat comes in time, or no call ends by its deadline, proves nothing: then a longer window.
    for (let windowMs = 2_000; replays === 0; windowMs *= 4) {
      expect(windowMs).toBeLessThan(60_000)
      replays = await replaysWithin(windowMs)
    }
  })

  // How often a key was replayed before it was carried out anew; 0: a call took too long for the window.
  async function replaysWithin(windowMs: number): Promise<number> {
    const brief = await stage.start({ window: `${windowMs}ms`, deadline: `${windowMs * 0.75}ms` })
    const client = stage.client(brief)
    const [user, key] = [client.user(), client.key()]
    const askedMs = performance.now()
    const first = await user.post('/charges', key)
    const firstMs = performance.now()
    let [replays, anew] = [0, false]
    while (first.status === 201 && !anew) {
      const sentMs = performance.now()
      const answer = await user.post('/charges', key)
      if (answer.status === 503) break
      expect(answer.status).toBe(201)
      anew = !isReplay(answer)
      if (anew) expect(performance.now() - askedMs).toBeGreaterThan(windowMs)
      else {
        expect(answer.body.equals(first.body)).toBe(true)
        expect(sentMs - firstMs).toBeLessThan(windowMs + 1_000)
        replays += 1
      }
    }
    if (anew) expect(await user.effects()).toBe(2)
    else expect(first.status === 503 || first.status === 201).toBe(true)
    await brief.kill()
    return anew ? replays : 0
  }

  it('http-62 a key that says that it is older than the window is refused, and nothing is done', async () => {
    const strict = await stage.start({ oldestKey: '24h' })
    const user = stage.client(strict).user()
    const dayAgo = uuidv7Source({ clock: { ...systemClock, wallMs: () => systemClock.wallMs() - 90_000_000 } })
    const old = await user.post('/charges', dayAgo())
    expect([old.status, (old.json() as { type: string }).type]).toEqual([412, 'urn:reprise:problem:key-too-old'])
    expect((await user.post('/charges', uuidv7Source({})())).status).toBe(201)
    expect(await user.effects()).toBe(1)
    await strict.kill()
  })

  it('http-64 a window that is too short is refused at start-up', async () => {
    // Shorter than the deadline of the atomic routes; then long enough for them, but not for the lease.
    await expect(stage.start({ window: '900ms' })).rejects.toThrow('WINDOW_SHORTER_THAN_DEADLINE')
    const brief = { window: '15s', lease: '20s' }
    await expect(stage.start(brief)).rejects.toThrow('WINDOW_SHORTER_THAN_LEASE')
    const { db } = stage.ledger
    const options = { name: 'never', principal: () => 'a', window: '1h', retryHorizon: '2h' } as const
    const code = 'WINDOW_SHORTER_THAN_HORIZON'
    expect(() => atomicRoute(db, options, async () => reply(204))).toThrow(expect.objectContaining({ code }))
    expect(() => leasedRoute(db, { ...options, recover: hold() }, async () => reply(204))).toThrow(
      expect.objectContaining({ code }),
    )
  })

  it('http-65 a purge in the middle of a request leaves its claim alone', async () => {
    // Of a lease of 1 s a machine that is busy may lose the renewal, and an unknown outcome is what this purge does
    // forget.
    const owner = await stage.start({ lease: '20s' })
    const client = stage.client(owner, steady)
    const [user, key] = [client.user(), client.key()]
    const send = (at: number) => user.send({ path: '/leased/slow?ms=2500', key, body: charge, at })
    let isOver = false
    const running = send(0).finally(() => {
      isOver = true
    })
    await isClaimed(owner)
    const duplicates: SubjectAnswer[] = []
    while (!isOver) {
      await purge({ store: stage.ledger.db, unknownAfter: 0 })
      duplicates.push(await send(1))
    }
    const first = await running
    expect([first.status, isReplay(first)]).toEqual([201, false])
    // The last one may come when the first is through.
    for (const answer of duplicates.filter(({ status }) => status !== 409)) {
      expect([answer.status, isReplay(answer), answer.body.equals(first.body)]).toEqual([201, true, true])
    }
    expect(duplicates.filter(({ status }) => status === 409).length).toBeGreaterThan(0)
    expect(await user.effects()).toBe(1)
    await owner.kill()
  })
})

it('every controlled case is played', () => {
  const folder = new URL('.', import.meta.url)
  const sources = readdirSync(folder).filter((file) => file.endsWith('.test.ts'))
  const text = sources.map((file) => readFileSync(new URL(file, folder), 'utf8')).join('\n')
  const played = new Set([...text.matchAll(/'(http-\d\d[a-z]?) /g)].map(([, id]) => id))
  expect(controlledHttpCases.map(({ id }) => id).filter((id) => !played.has(id))).toEqual([])
})
