// Group A: where a key is required, the forms of its header field, which keys are valid, and for which methods they
// count.

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

/** Cases about the header field and its keys. */
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
  {
    id: 'http-08',
    title: 'MUST take 255 characters, and refuse 256',
    proves: 'a key is cut nowhere, so that two long keys never become one',
    routes: ['POST /charges'],
    async run(client, check) {
      const user = client.user()
      const key = client.key().padEnd(255, 'x')
      check.first(await user.post('/charges', key), '255 characters')
      check.status(await user.post('/charges', `${key}y`), 400, '256 characters')
      await check.effects(user, 1)
    },
  },
  {
    id: 'http-08b',
    title: 'MUST count the characters of the key and not those of the field',
    proves: 'quotation marks take nothing from the limit, and do not lift it',
    routes: ['POST /charges'],
    async run(client, check) {
      const user = client.user()
      const key = client.key().padEnd(255, 'x')
      check.first(await user.post('/charges', `"${key}"`), '255 characters, quoted')
      check.status(await user.post('/charges', `"${key}y"`), 400, '256 characters, quoted')
      check.status(await user.post('/charges', key.repeat(30)), [400, 431], 'some thousand characters')
      await check.effects(user, 1)
    },
  },
  {
    id: 'http-08c',
    title: 'MUST refuse what is not visible ASCII',
    proves: 'encodings along the way cannot make two keys of one, and no control character reaches a store or a log',
    routes: ['POST /charges'],
    run: refused((key) => [`${key}\u00e9`, `"${key}\u00e9"`, `${key}\t${key}`, `${key} ${key}`]),
  },
  {
    id: 'http-08d',
    title: 'MUST refuse a quoted key that does not end, or goes on after its end',
    proves: 'what can be read in two ways is not guessed',
    routes: ['POST /charges'],
    run: refused((key) => [`"${key}`, `"${key}"x`, `"${key}\\`, `"${key}\\x"`]),
  },
  {
    id: 'http-10',
    title: 'MUST refuse two Idempotency-Key fields',
    proves: 'many servers join them to one key that no client ever sent',
    routes: ['POST /charges'],
    run: refused((key) => [[`${key}-a`, `${key}-b`]]),
  },
  {
    id: 'http-10b',
    title: 'MUST refuse several fields whatever is in them: three, the same twice, one empty',
    proves: 'which of them the client meant is not for the server to choose',
    routes: ['POST /charges'],
    run: refused((key) => [
      [`${key}-a`, `${key}-b`, `${key}-c`],
      [key, key],
      [`"${key}"`, `"${key}"`],
      [key, ''],
    ]),
  },
  {
    id: 'http-10c',
    title: 'MUST refuse two keys that something on the way has joined by a comma',
    proves: 'a proxy may fold fields before the server sees them',
    routes: ['POST /charges'],
    run: refused((key) => [`${key}-a, ${key}-b`, `"${key}-a", "${key}-b"`, `"${key}","${key}"`]),
  },
  {
    id: 'http-11',
    title: 'MUST tell keys apart that differ only in case',
    proves: 'a store with a collation that ignores case does not merge two intents',
    routes: ['POST /charges'],
    async run(client, check) {
      const user = client.user()
      const key = `k-${client.key()}`
      const first = await user.post('/charges', key)
      const second = await user.post('/charges', key.toUpperCase())
      check.first(first, 'lower case')
      check.first(second, 'upper case')
      await check.effects(user, 2)
    },
  },
  {
    id: 'http-11b',
    title: 'MUST tell keys apart that begin alike, end in a space of the store, or hold its wildcards',
    proves: 'keys are compared whole and as they are',
    routes: ['POST /charges'],
    async run(client, check) {
      const user = client.user()
      const key = client.key()
      const keys = [key, `${key}0`, `${key}%`, `${key}_`, `${key}*`, `${key}:1`]
      for (const [place, one] of keys.entries()) check.first(await user.post('/charges', one), `key ${place + 1}`)
      await check.effects(user, keys.length)
    },
  },
  {
    id: 'http-13',
    title: 'MUST ignore a key on GET',
    proves: 'a client that sends a key with everything reads what is there now, not what was there before',
    routes: ['POST /charges'],
    async run(client, check) {
      const [user, key] = [client.user(), client.key()]
      const look = () => user.send({ method: 'GET', path: '/effects', key })
      check.same((await look()).json(), { effects: 0 }, 'before')
      check.first(await user.post('/charges', key), 'POST with the same key')
      const after = await look()
      check.same(after.json(), { effects: 1 }, 'after')
      check.unmarked(after, 'the second GET')
    },
  },
  {
    id: 'http-13b',
    title: 'MUST NOT refuse HEAD or OPTIONS because of a key',
    proves: 'a key is never harmful where it means nothing',
    routes: ['POST /charges'],
    async run(client, check) {
      const [user, key] = [client.user(), client.key()]
      for (const method of ['HEAD', 'OPTIONS']) {
        for (const again of ['', ' again']) {
          const answer = await user.send({ method, path: '/effects', key })
          check.holds(
            ![400, 409, 422].includes(answer.status) && answer.status < 500,
            `${method}${again} is not refused`,
          )
          check.unmarked(answer, `${method}${again}`)
        }
      }
      check.first(await user.post('/charges', key), 'POST with the same key')
    },
  },
  {
    id: 'http-13c',
    title: 'MUST either replay PUT with a key, or carry it out anew and not call that a replay',
    proves: 'an answer says truly whether something was done for it',
    routes: ['PUT /charges/:account'],
    async run(client, check) {
      const [user, key] = [client.user(), client.key()]
      const put = () => user.send({ method: 'PUT', path: '/charges/one', key, body: charge })
      const first = await put()
      const second = await put()
      check.first(first, 'the first')
      check.holds(second.status >= 200 && second.status < 300, 'the second is a success')
      const effects = await user.effects()
      if (effects === 1) check.replay(second, first, 'the second')
      else check.unmarked(second, 'the second')
      check.holds(effects === 1 || effects === 2, 'one effect, or one each')
    },
  },
  {
    id: 'http-14',
    title: 'MUST refuse a key that is shorter than the route asks for',
    proves: 'keys such as 1 collide with those of the next client that counts',
    routes: ['POST /strict'],
    async run(client, check) {
      const user = client.user()
      for (const key of ['1', '"1"', client.key().slice(0, 15)]) {
        check.status(await user.post('/strict', key), 400, `${key.length} characters`)
      }
      await check.effects(user, 0)
      check.first(await user.post('/strict', client.key().slice(0, 16)), '16 characters')
    },
  },
]
