// Group A, second half: which keys are valid, and for which methods they count.

import type { HttpCase } from '../http-case.js'

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

/** Cases about keys. */
export const keyFormCases: readonly HttpCase[] = [
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
