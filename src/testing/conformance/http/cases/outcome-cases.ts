// Group C: which outcomes are remembered, and which leave the key free.

import type { HttpCase } from '../http-case.js'
import type { SubjectAnswer, SubjectUser } from '../http-case-client.js'

/**
 * Sends the request until the answer is no longer `passing`: a server may count the attempts in each of its processes.
 */
async function past(
  user: SubjectUser,
  path: string,
  key: string,
  passing: (answer: SubjectAnswer) => boolean,
  most: number,
): Promise<{ readonly passed: readonly SubjectAnswer[]; readonly last: SubjectAnswer }> {
  const passed: SubjectAnswer[] = []
  for (;;) {
    const last = await user.post(path, key)
    if (!passing(last) || passed.length === most) return { passed, last }
    passed.push(last)
  }
}

const is = (status: number) => (answer: SubjectAnswer) => answer.status === status
const isServerError = ({ status }: SubjectAnswer): boolean => status >= 500

/** Answers that leave the key free: afterwards the request is carried out and remembered. */
function releases(path: string, passing: (answer: SubjectAnswer) => boolean, what: string): HttpCase['run'] {
  return async (client, check) => {
    const [user, key] = [client.user(), client.key()]
    const { passed, last } = await past(user, path, key, passing, client.places)
    check.holds(passed.length > 0, `at first ${what}`)
    for (const answer of passed) check.unmarked(answer, what)
    check.first(last, 'the retry')
    check.replay(await user.post(path, key), last, 'the repeat of the retry')
    await check.effects(user, 1)
  }
}

/** A final refusal is remembered. */
function final(path: string, status: number): HttpCase['run'] {
  return async (client, check) => {
    const [user, key] = [client.user(), client.key()]
    const first = await user.post(path, key)
    check.status(first, status, 'the first')
    check.unmarked(first, 'the first')
    for (const what of ['the repeat', 'one more']) check.replay(await user.post(path, key), first, what)
    await check.effects(user, 0)
  }
}

/** What a server may answer while the outcome is unknown. */
function holdsBack(path: string): HttpCase['run'] {
  return async (client, check) => {
    const [user, key] = [client.user(), client.key()]
    const first = await user.post(path, key)
    check.holds(first.status >= 400, 'the first is no success')
    await check.effects(user, 1, 'effects after the first')
    for (let number = 1; number <= 4; number += 1) {
      const again = await user.post(path, key)
      // A server that has found out in the meantime may answer with the outcome.
      if (again.status >= 300) check.status(again, [409, 425, 500, 503], `retry ${number}`)
    }
    await check.effects(user, 1)
  }
}

/** Cases of group C. */
export const outcomeCases: readonly HttpCase[] = [
  {
    id: 'http-38',
    title: 'MUST NOT remember the refusal of a wrong shape: corrected, the same key is carried out',
    proves: 'a typing error does not burn the key',
    routes: ['POST /charges'],
    async run(client, check) {
      const [user, key] = [client.user(), client.key()]
      for (const amount of ['much', 1.5, 'much']) {
        const refusal = await user.post('/charges', key, { amount })
        check.status(refusal, [400, 422], 'a wrong shape')
        check.unmarked(refusal, 'a wrong shape')
      }
      await check.effects(user, 0, 'effects before')
      check.first(await user.post('/charges', key, { amount: 5 }), 'the corrected request')
      await check.effects(user, 1)
    },
  },
  {
    id: 'http-38b',
    title: 'MUST NOT remember a body that cannot be read',
    proves: 'a body that was cut off on the way does not burn the key either',
    routes: ['POST /charges'],
    async run(client, check) {
      const [user, key] = [client.user(), client.key()]
      for (const body of ['{"amount":', '', '{"amount":5}}']) {
        check.status(await user.send({ path: '/charges', key, body }), [400, 415, 422], 'a body that is no JSON')
      }
      check.first(await user.post('/charges', key), 'the whole body')
      await check.effects(user, 1)
    },
  },
  {
    id: 'http-39',
    title: 'MUST remember a final refusal of the business: 422',
    proves: 'a refusal that the handler decided stays decided, whatever has changed since',
    routes: ['POST /fail422'],
    run: final('/fail422', 422),
  },
  {
    id: 'http-39b',
    title: 'MUST remember a final refusal of the business: 402',
    proves: 'a declined card is not tried again by a retry',
    routes: ['POST /fail402'],
    run: final('/fail402', 402),
  },
  {
    id: 'http-40',
    title: 'MUST NOT remember a 500 of a handler that did nothing: a retry is carried out',
    proves: 'an error that passes does not stick to the key for a day',
    routes: ['POST /fail500'],
    run: releases('/fail500', is(500), '500'),
  },
  {
    id: 'http-41',
    title: 'MUST undo the effect of a handler that breaks after it, and carry the retry out: one effect',
    proves: 'marker and effect are one commit',
    routes: ['POST /throw-after-effect'],
    run: releases('/throw-after-effect', isServerError, 'an error'),
  },
  {
    id: 'http-41b',
    title: 'MUST NOT carry out again what broke after an effect that cannot be undone',
    proves: 'an outcome that nobody knows is not tried again blindly',
    routes: ['POST /leased/throw-after-effect'],
    run: holdsBack('/leased/throw-after-effect'),
  },
  {
    id: 'http-43',
    title: 'MUST NOT remember a 429',
    proves: 'a client that waits as it was told is served',
    routes: ['POST /limited'],
    run: releases('/limited', is(429), '429'),
  },
  {
    id: 'http-44',
    title: 'MUST carry out again what is proven not to have been sent',
    proves: 'a connection that was refused does not block the key',
    routes: ['POST /leased/not-sent'],
    run: releases('/leased/not-sent', ({ status }) => status >= 400, 'no success'),
  },
  {
    id: 'http-44b',
    title: 'MUST NOT carry out again what was sent and not answered',
    proves: 'sent without a reply is neither done nor not done',
    routes: ['POST /leased/ambiguous'],
    run: holdsBack('/leased/ambiguous'),
  },
]
