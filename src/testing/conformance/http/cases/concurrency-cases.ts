// Groups D and E, the part that is visible from outside: the same request many times at once, and handlers that take
// longer than a lease.

import { sleep } from '../../../../kernel/index.js'
import type { HttpCase } from '../http-case.js'
import type { SubjectAnswer } from '../http-case-client.js'
import type { HttpCheck } from '../http-check.js'

/** Of many requests at once, one was carried out; the others were refused for now or got its answer. */
function oneCarriedOut(answers: readonly SubjectAnswer[], check: HttpCheck): void {
  const successes = answers.filter(({ status }) => status === 201)
  for (const answer of answers) {
    check.status(answer, [201, 409], 'each of them')
    if (answer.status === 409) check.retryAfter(answer, 'a duplicate')
  }
  check.holds(successes.length > 0, 'one of them is carried out')
  check.same(
    new Set(successes.map(({ body }) => body.toString('hex'))).size,
    1,
    'different answers among the successes',
  )
}

/** Sends that many requests at once. */
function many(path: string, count: number): HttpCase['run'] {
  return async (client, check) => {
    const [user, key] = [client.user(), client.key()]
    const answers = await Promise.all(Array.from({ length: count }, () => user.post(path, key)))
    oneCarriedOut(answers, check)
    const again = await user.post(path, key)
    check.replay(again, answers.find(({ status }) => status === 201) as SubjectAnswer, 'a later repeat')
    await check.effects(user, 1)
  }
}

/**
 * Plays what has to happen while a handler works, with handlers that take longer and longer: on a busy machine a
 * request may arrive when the work is done. `play` says whether it was in time; the last one has to be.
 */
async function withMoreTime(
  handlerMs: readonly number[],
  play: (ms: number, isLast: boolean) => Promise<boolean>,
): Promise<void> {
  for (const [place, ms] of handlerMs.entries()) if (await play(ms, place === handlerMs.length - 1)) return
}

/** Cases about concurrent requests. */
export const concurrencyCases: readonly HttpCase[] = [
  {
    id: 'http-45',
    title: 'MUST carry out one of 50 identical requests at once; the others get its answer, or 409 with Retry-After',
    proves: 'an impatient user, or a client without backoff, pays once',
    routes: ['POST /slow'],
    run: many('/slow?ms=200', 50),
  },
  {
    id: 'http-45b',
    title: 'MUST do so where the handler is quick',
    proves: 'the race between the first answer and the next claim is decided too',
    routes: ['POST /charges'],
    run: many('/charges', 50),
  },
  {
    id: 'http-45c',
    title: 'MUST do so for 500 at once, without failing any of them',
    proves: 'duplicates take nothing away from the work that they wait for: no pool runs dry',
    routes: ['POST /slow'],
    run: many('/slow?ms=300', 500),
  },
  {
    id: 'http-45d',
    title: 'MUST do so on a leased route',
    proves: 'the same where the effect lies outside the store',
    routes: ['POST /leased/slow'],
    run: many('/leased/slow?ms=200', 50),
  },
  {
    id: 'http-46',
    title: 'MUST do so across two processes on one store',
    proves: 'the store decides, and not the memory of a process',
    routes: ['POST /slow'],
    places: 2,
    run: many('/slow?ms=200', 50),
  },
  {
    id: 'http-46b',
    title: 'MUST do so across two processes on a leased route',
    proves: 'the same where the effect lies outside the store',
    routes: ['POST /leased/slow'],
    places: 2,
    run: many('/leased/slow?ms=200', 50),
  },
  {
    id: 'http-46c',
    title: 'MUST replay in one process what another has carried out',
    proves: 'a retry that a balancer sends elsewhere finds the answer',
    routes: ['POST /charges'],
    places: 2,
    async run(client, check) {
      const [user, key] = [client.user(), client.key()]
      const send = (at: number) => user.send({ path: '/charges', key, body: '{"amount":5}', at })
      const first = await send(0)
      check.first(first, 'the first')
      for (const at of [1, 0, 1]) check.replay(await send(at), first, `the repeat at process ${at + 1}`)
      await check.effects(user, 1)
    },
  },
  {
    id: 'http-48',
    title: 'MUST give duplicates that wait for the winner its answer',
    proves: 'waiting is worth it: nobody has to come again',
    routes: ['POST /waiting'],
    async run(client, check) {
      const [user, key] = [client.user(), client.key()]
      const answers = await Promise.all(Array.from({ length: 10 }, () => user.post('/waiting?ms=300', key)))
      for (const answer of answers) check.status(answer, 201, 'each of them')
      oneCarriedOut(answers, check)
      await check.effects(user, 1)
    },
  },
  {
    id: 'http-48b',
    title: 'MUST refuse a duplicate whose wait is over, with Retry-After, before the winner is done',
    proves: 'a wait has an end, whatever the winner does',
    routes: ['POST /waiting'],
    run: (client, check) =>
      withMoreTime([3_500, 7_000, 14_000], async (ms, isLast) => {
        const [user, key] = [client.user(), client.key()]
        const answers = await Promise.all([1, 2].map(() => user.post(`/waiting?ms=${ms}`, key)))
        const isTooLate = answers.every(({ status }) => status === 201)
        if (isTooLate && !isLast) return false
        const [sooner, later] = answers.sort((a, b) => a.tookMs - b.tookMs) as [SubjectAnswer, SubjectAnswer]
        check.status(later, 201, 'the winner')
        check.status(sooner, [409, 503], 'the one that waited')
        check.retryAfter(sooner, 'the one that waited')
        check.replay(await user.post(`/waiting?ms=${ms}`, key), later, 'its retry')
        await check.effects(user, 1)
        return true
      }),
  },
  {
    id: 'http-50',
    title: 'MUST carry out 50 identical requests with different keys: 50 effects',
    proves: 'the key is the intent: what looks alike may well be meant twice',
    routes: ['POST /charges'],
    async run(client, check) {
      const user = client.user()
      const answers = await Promise.all(Array.from({ length: 50 }, () => user.post('/charges', client.key())))
      for (const answer of answers) check.first(answer, 'each of them')
      check.same(new Set(answers.map(({ body }) => body.toString('hex'))).size, 50, 'different answers')
      await check.effects(user, 50)
    },
  },
  {
    id: 'http-53',
    title: 'MUST refuse duplicates while a healthy handler works, also past the first lease',
    proves: 'a lease is renewed while its owner is alive, and nobody else takes over',
    routes: ['POST /leased/slow'],
    run: (client, check) =>
      withMoreTime([2_500, 5_000, 10_000], async (ms, isLast) => {
        const [user, key] = [client.user(), client.key()]
        const path = `/leased/slow?ms=${ms}`
        const running = user.post(path, key)
        await sleep(1_800)
        const duplicate = await user.post(path, key)
        const isTooLate = duplicate.status === 201
        if (isTooLate && !isLast) {
          check.replay(duplicate, await running, 'the duplicate that came too late')
          return false
        }
        check.status(duplicate, 409, 'the duplicate')
        check.retryAfter(duplicate, 'the duplicate')
        const first = await running
        check.first(first, 'the first')
        check.replay(await user.post(path, key), first, 'the repeat')
        await check.effects(user, 1)
        return true
      }),
  },
]
