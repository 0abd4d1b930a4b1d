// Group A, first half: where a key is required, and the forms of its field.

import type { HttpCase } from '../http-case.js'
import type { HttpCaseClient } from '../http-case-client.js'
import type { HttpCheck } from '../http-check.js'

const charge = '{"amount":5}'

/** Header fields that must be refused before anything happens. */
function refused(values: (key: string) => readonly (string | readonly string[])[]): HttpCase['run'] {
  return async (client, check) => {
    const user = client.user()
    for (const [place, key] of values(client.key()).entries()) {
      const answer = await user.send({ path: '/charges', key, body: charge })
      check.status(answer, 400, `form ${place + 1} of the field`)
    }
    await check.effects(user, 0)
  }
}

/**
 * Two forms of one key: the second is a repeat of the first or is refused, but never carried out as another request.
 */
function oneKey(forms: (key: string) => readonly [string, string]): HttpCase['run'] {
  return async (client, check) => {
    const user = client.user()
    const [one, other] = forms(client.key())
    const first = await user.post('/charges', one)
    const second = await user.post('/charges', other)
    if (first.status === 400 || second.status === 400) {
      // A strict server accepts only one of the forms.
      check.holds(first.status !== second.status, 'one of the two forms is taken')
    } else check.replay(second, first, 'the other form of the same key')
    await check.effects(user, 1)
  }
}

async function missing(client: HttpCaseClient, check: HttpCheck, method: string, path: string): Promise<void> {
  const user = client.user()
  const answer = await user.send({ method, path, body: charge })
  check.problem(answer, 400, 'a request without a key')
  await check.effects(user, 0)
}

/** Cases about the header field. */
export const headerCases: readonly HttpCase[] = [
  {
    id: 'http-01',
    title: 'MUST refuse a request without a key where one is required: 400, with a problem type',
    proves: 'a client that forgot the key learns it before the effect and not after',
    routes: ['POST /charges'],
    run: (client, check) => missing(client, check, 'POST', '/charges'),
  },
  {
    id: 'http-01b',
    title: 'MUST refuse a missing key on another method too',
    proves: 'the rule belongs to the route and not to POST',
    routes: ['PUT /charges/:account'],
    run: (client, check) => missing(client, check, 'PUT', '/charges/one'),
  },
  {
    id: 'http-02',
    title: 'MUST carry out a request without a key as usual where a key is optional, each time',
    proves: 'two requests without a key are two intents, however alike they are',
    routes: ['POST /optional'],
    async run(client, check) {
      const user = client.user()
      for (const what of ['the first', 'the second']) check.first(await user.post('/optional', undefined), what)
      await check.effects(user, 2)
    },
  },
  {
    id: 'http-02b',
    title: 'MUST remember a key where it is optional and given',
    proves: 'optional means that it may be left out, not that it may be overlooked',
    routes: ['POST /optional'],
    async run(client, check) {
      const [user, key] = [client.user(), client.key()]
      const first = await user.post('/optional', key)
      check.first(first, 'the first')
      check.replay(await user.post('/optional', key), first, 'the repeat')
      await check.effects(user, 1)
    },
  },
  {
    id: 'http-03',
    title: 'MUST take a key as the structured-field string that the draft asks for',
    proves: 'browsers and generated clients send the quoted form',
    routes: ['POST /charges'],
    async run(client, check) {
      const user = client.user()
      check.first(await user.post('/charges', `"${client.key()}"`), 'a quoted key')
      await check.effects(user, 1)
    },
  },
  {
    id: 'http-03b',
    title: 'MUST take escapes in a quoted key, and remember the key by them',
    proves: 'a reader that only strips quotation marks takes two keys for one, or one for two',
    routes: ['POST /charges'],
    async run(client, check) {
      const [user, key] = [client.user(), client.key()]
      const first = await user.post('/charges', `"${key}\\"\\\\"`)
      check.first(first, 'a key with escapes')
      check.replay(await user.post('/charges', `"${key}\\"\\\\"`), first, 'its repeat')
      check.first(await user.post('/charges', `"${key}\\\\\\""`), 'another key of the same characters')
      await check.effects(user, 2)
    },
  },
  {
    id: 'http-04',
    title: 'MUST take a bare key and the same one quoted for one, or refuse one of the forms',
    proves: 'a client library that changes the form between two attempts does not pay twice',
    routes: ['POST /charges'],
    run: oneKey((key) => [key, `"${key}"`]),
  },
  {
    id: 'http-04b',
    title: 'MUST do so whichever comes first',
    proves: 'the same the other way round',
    routes: ['POST /charges'],
    run: oneKey((key) => [`"${key}"`, key]),
  },
  {
    id: 'http-04c',
    title: 'MUST NOT take parameters or spaces around a key for another key',
    proves: 'what a proxy adds around the value changes nothing',
    routes: ['POST /charges'],
    run: oneKey((key) => [`"${key}"`, `"${key}" ;v=1`]),
  },
  {
    id: 'http-07',
    title: 'MUST refuse an empty key, quoted or bare, and store nothing for it',
    proves: 'all clients with an empty variable would share one record',
    routes: ['POST /charges'],
    run: refused(() => ['""', '', '"" ']),
  },
  {
    id: 'http-07b',
    title: 'MUST NOT share an empty key where a key is optional',
    proves: 'the second request with an empty key never gets the answer of the first',
    routes: ['POST /optional'],
    async run(client, check) {
      const user = client.user()
      const answers = [await user.post('/optional', ''), await user.post('/optional', '')]
      const carriedOut = answers.filter(({ status }) => status === 201).length
      for (const answer of answers) {
        check.status(answer, [201, 400], 'an empty key')
        check.unmarked(answer, 'an empty key')
      }
      await check.effects(user, carriedOut)
    },
  },
]
