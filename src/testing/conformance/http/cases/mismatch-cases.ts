// Group B, second part: the same key with another request.

import type { HttpCase } from '../http-case.js'
import type { SubjectRequest } from '../http-case-client.js'

/**
 * Two requests under one key that concern different things: the second is refused or carried out by itself, but never
 * answered with the first one's answer.
 */
function apart(one: SubjectRequest, other: SubjectRequest): HttpCase['run'] {
  return async (client, check) => {
    const [user, key] = [client.user(), client.key()]
    const body = '{"amount":5}'
    const first = await user.send({ ...one, key, body })
    const second = await user.send({ ...other, key, body })
    check.first(first, 'the first')
    if (second.status !== 422) {
      check.first(second, 'the other')
      check.holds(!second.body.equals(first.body), 'the other has an answer of its own')
    }
    check.replay(await user.send({ ...one, key, body }), first, 'the first again')
    await check.effects(user, second.status === 422 ? 1 : 2)
  }
}

/** Cases about different requests under one key. */
export const mismatchCases: readonly HttpCase[] = [
  {
    id: 'http-20',
    title: 'MUST refuse the same key with another body: 422, with a problem type; and then still replay the original',
    proves: 'a refusal does not damage the record of the request that was carried out',
    routes: ['POST /charges'],
    async run(client, check) {
      const [user, key] = [client.user(), client.key()]
      const first = await user.post('/charges', key, { amount: 5 })
      check.first(first, 'the first')
      check.problem(await user.post('/charges', key, { amount: 6 }), 422, 'another body')
      await check.effects(user, 1, 'effects after the refusal')
      check.replay(await user.post('/charges', key, { amount: 5 }), first, 'the original again')
      await check.effects(user, 1)
    },
  },
  {
    id: 'http-20b',
    title: 'MUST keep doing so: many refusals in between change nothing, and are not replayed',
    proves: 'a refusal is about one request, and is not remembered for the key',
    routes: ['POST /charges'],
    async run(client, check) {
      const [user, key] = [client.user(), client.key()]
      const first = await user.post('/charges', key, { amount: 5 })
      check.first(first, 'the first')
      for (const amount of [6, 6, 7, 8]) {
        const refusal = await user.post('/charges', key, { amount })
        check.status(refusal, 422, 'another body')
        check.unmarked(refusal, 'another body')
        check.replay(await user.post('/charges', key, { amount: 5 }), first, 'the original in between')
      }
      await check.effects(user, 1)
    },
  },
  {
    id: 'http-20c',
    title: 'MUST refuse another body while the first is under way, 422 or 409, and leave the first as it is',
    proves: 'a duplicate that is wrong cannot end, replace or free the one that runs',
    routes: ['POST /slow'],
    async run(client, check) {
      const [user, key] = [client.user(), client.key()]
      const path = '/slow?ms=400'
      const running = user.send({ path, key, body: '{"amount":5}', at: 0 })
      const refusals = [user.post(path, key, { amount: 6 }), user.post(path, key, { amount: 7 })]
      const first = await running
      const answers = await Promise.all(refusals)
      // The request that came first is the original: it succeeds, and all others are refused.
      const all = [first, ...answers]
      check.same(all.filter(({ status }) => status === 201).length, 1, 'successes')
      for (const answer of all) check.status(answer, [201, 409, 422], 'each')
      const amount = (all.find(({ status }) => status === 201)?.json() as { amount?: number } | undefined)?.amount
      const again = await user.post(path, key, { amount })
      check.replay(again, all.find(({ status }) => status === 201) as typeof again, 'the original again')
      await check.effects(user, 1)
    },
  },
  {
    id: 'http-20d',
    title: 'MUST carry out the other body under a key of its own',
    proves: 'a refused intent is not lost: it only needs its own key',
    routes: ['POST /charges'],
    async run(client, check) {
      const [user, key] = [client.user(), client.key()]
      check.first(await user.post('/charges', key, { amount: 5 }), 'the first')
      check.status(await user.post('/charges', key, { amount: 6 }), 422, 'another body')
      check.first(await user.post('/charges', client.key(), { amount: 6 }), 'the other body, its own key')
      await check.effects(user, 2)
    },
  },
  {
    id: 'http-20e',
    title: 'MUST refuse another body on a leased route too',
    proves: 'the same where the effect lies outside the store',
    routes: ['POST /leased/charges'],
    async run(client, check) {
      const [user, key] = [client.user(), client.key()]
      const first = await user.post('/leased/charges', key, { amount: 5 })
      check.first(first, 'the first')
      check.status(await user.post('/leased/charges', key, { amount: 6 }), 422, 'another body')
      check.replay(await user.post('/leased/charges', key, { amount: 5 }), first, 'the original again')
      await check.effects(user, 1)
    },
  },
  {
    id: 'http-22',
    title: 'MUST NOT answer one path with the answer of another',
    proves: 'the account in the path is part of the intent',
    routes: ['POST /charges/:account'],
    run: apart({ path: '/charges/one' }, { path: '/charges/two' }),
  },
  {
    id: 'http-22b',
    title: 'MUST NOT answer one method with the answer of another',
    proves: 'PUT and POST of one path are two intents',
    routes: ['POST /charges/:account', 'PUT /charges/:account'],
    run: apart({ path: '/charges/one' }, { method: 'PUT', path: '/charges/one' }),
  },
  {
    id: 'http-22c',
    title: 'MUST NOT answer one route with the answer of another',
    proves: 'a client that reuses a key across routes does not get a receipt for something else',
    routes: ['POST /charges', 'POST /optional'],
    run: apart({ path: '/charges' }, { path: '/optional' }),
  },
  {
    id: 'http-23',
    title: 'MUST NOT take requests with different queries for one',
    proves: 'the query can be all that tells two intents apart',
    routes: ['POST /charges'],
    run: apart({ path: '/charges?currency=EUR' }, { path: '/charges?currency=JPY' }),
  },
  {
    id: 'http-23b',
    title: 'MUST NOT take a request with a query for one without',
    proves: 'absent is not empty',
    routes: ['POST /charges'],
    run: apart({ path: '/charges' }, { path: '/charges?dry-run=1' }),
  },
  {
    id: 'http-23c',
    title: 'MUST NOT take values of one name in another order for the same',
    proves: 'from and to are often one repeated name',
    routes: ['POST /charges'],
    run: apart({ path: '/charges?account=1&account=2' }, { path: '/charges?account=2&account=1' }),
  },
]
