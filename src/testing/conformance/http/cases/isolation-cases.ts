// Group G, the part that is visible from outside: whose key it is.

import type { HttpCase } from '../http-case.js'
import type { SubjectUser } from '../http-case-client.js'

/**
 * Characters that somebody might use to join user and key. Not every server allows all of them in the name of a user.
 */
const separators = ['-', '_', '.', '~', '+', '/', ':', '|']

/** Another user sends the same key and body. */
function ownedBy(path: string): HttpCase['run'] {
  return async (client, check) => {
    const [ann, bob, key] = [client.user(), client.user(), client.key()]
    const first = await ann.post(path, key)
    const other = await bob.post(path, key)
    check.first(first, 'the first user')
    check.unmarked(other, 'the other user')
    check.holds(!other.body.equals(first.body), 'the other user does not get the answer of the first')
    const refused = other.status >= 400
    if (refused) check.status(other, [403, 404], 'the other user')
    check.replay(await ann.post(path, key), first, 'the repeat of the first user')
    await check.effects(ann, 1, 'effects of the first user')
    await check.effects(bob, refused ? 0 : 1, 'effects of the other')
  }
}

/** Cases of group G. */
export const isolationCases: readonly HttpCase[] = [
  {
    id: 'http-67',
    title: 'MUST NOT answer a user with what another got under the same key and body',
    proves: 'a guessed or leaked key is worth nothing to a stranger',
    routes: ['POST /charges'],
    run: ownedBy('/charges'),
  },
  {
    id: 'http-67b',
    title: 'MUST NOT do so on a leased route either',
    proves: 'the same where the effect lies outside the store',
    routes: ['POST /leased/charges'],
    run: ownedBy('/leased/charges'),
  },
  {
    id: 'http-67c',
    title: 'MUST NOT mix up users and keys whose names, joined, are the same',
    proves: 'a name that holds the separator does not reach into the records of another',
    routes: ['POST /charges'],
    async run(client, check) {
      for (const separator of separators) {
        const [name, key] = [client.user().name, client.key()]
        const pairs: readonly (readonly [SubjectUser, string])[] = [
          [client.user(name), `b${separator}${key}`],
          [client.user(`${name}${separator}b`), key],
        ]
        for (const [user, one] of pairs) {
          const answer = await user.post('/charges', one)
          if (answer.status === 401 && user.name !== name && separator !== '-') continue
          check.first(answer, `names joined by ${separator}`)
          await check.effects(user, 1)
        }
      }
    },
  },
  {
    id: 'http-68',
    title: 'MUST NOT let a key that one user holds be in the way of another',
    proves: 'nobody can block the keys of others by taking them first',
    routes: ['POST /leased/slow', 'POST /charges'],
    async run(client, check) {
      for (const path of ['/leased/slow?ms=500', '/charges']) {
        const [ann, bob, key] = [client.user(), client.user(), client.key()]
        const claimed = bob.post(path, key, { amount: 7 })
        check.first(await ann.post(path, key, { amount: 6 }), 'the other user')
        check.first(await claimed, 'the first user')
        for (const user of [ann, bob]) await check.effects(user, 1)
      }
    },
  },
  {
    id: 'http-69',
    title: 'MUST refuse a stranger with 401 whatever the key is, and keep nothing of it',
    proves: 'nobody without a name can claim, read or spoil a record',
    routes: ['POST /charges'],
    async run(client, check) {
      const [user, key] = [client.user(), client.key()]
      check.status(await client.nobody.post('/charges', key), 401, 'before')
      const first = await user.post('/charges', key)
      check.first(first, 'the user')
      const stranger = await client.nobody.post('/charges', key)
      check.status(stranger, 401, 'after')
      check.unmarked(stranger, 'after')
      check.holds(!stranger.body.equals(first.body), 'the stranger does not get the answer')
      check.replay(await user.post('/charges', key), first, 'the repeat')
      await check.effects(user, 1)
    },
  },
]
