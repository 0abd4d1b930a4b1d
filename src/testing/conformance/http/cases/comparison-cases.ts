// Group B, third part: which requests count as the same.

import type { HttpCase } from '../http-case.js'
import type { SubjectAnswer, SubjectRequest } from '../http-case-client.js'

/** Two ways to write one request: the second counts as a repeat. */
function alike(one: string, other: string, otherType = 'application/json'): HttpCase['run'] {
  return async (client, check) => {
    const [user, key] = [client.user(), client.key()]
    const first = await user.send({ path: '/charges', key, body: one })
    check.first(first, 'the first')
    const again = await user.send({ path: '/charges', key, body: other, type: otherType })
    check.replay(again, first, 'the same request, written otherwise')
    await check.effects(user, 1)
  }
}

/** Two different requests under one key: the second is refused, and the record of the first stays. */
function different(...pairs: readonly (readonly [one: string, other: string])[]): HttpCase['run'] {
  return async (client, check) => {
    for (const [place, [one, other]] of pairs.entries()) {
      const [user, key] = [client.user(), client.key()]
      const send = (body: string) => user.send({ path: '/charges', key, body })
      const first = await send(one)
      check.first(first, `the first of pair ${place + 1}`)
      check.status(await send(other), 422, `the other of pair ${place + 1}`)
      check.replay(await send(one), first, `the first of pair ${place + 1} again`)
      await check.effects(user, 1)
    }
  }
}

const form = (boundary: string, amount: number): SubjectRequest => ({
  path: '/multipart',
  body: `--${boundary}\r\nContent-Disposition: form-data; name="amount"\r\n\r\n${amount}\r\n--${boundary}--\r\n`,
  type: `multipart/form-data; boundary=${boundary}`,
})

const takesNoForms = ({ status }: SubjectAnswer): boolean => status === 400 || status === 415

/** Cases about comparing requests. */
export const comparisonCases: readonly HttpCase[] = [
  {
    id: 'http-24',
    title: 'SHOULD take JSON in another member order, or with other whitespace, for the same',
    proves: 'a retry that serialises the body anew is an honest retry',
    routes: ['POST /charges'],
    run: alike('{"amount":5,"note":"a","tags":[1,2]}', '{ "tags": [1, 2],\n\t"note": "a",\r\n "amount": 5 }'),
  },
  {
    id: 'http-24b',
    title: 'SHOULD take another spelling of a number for the same',
    proves: 'languages write the same number in different ways',
    routes: ['POST /charges'],
    run: alike('{"amount":100,"rate":0.5}', '{"amount":1e2,"rate":5E-1}'),
  },
  {
    id: 'http-24c',
    title: 'SHOULD take escapes for the characters that they mean',
    proves: 'some serialisers escape what others do not',
    routes: ['POST /charges'],
    run: alike('{"amount":5,"note":"\u00e9/\ud83d\ude00"}', '{"\\u0061mount":5,"note":"\\u00e9\\/\\ud83d\\ude00"}'),
  },
  {
    id: 'http-24d',
    title: 'SHOULD take members of members in another order for the same',
    proves: 'sorting only the outermost object is not enough',
    routes: ['POST /charges'],
    run: alike(
      '{"amount":5,"to":{"bank":"x","more":[{"a":1,"b":2}]}}',
      '{"to":{"more":[{"b":2,"a":1}],"bank":"x"},"amount":5}',
    ),
  },
  {
    id: 'http-24e',
    title: 'SHOULD take the media type without its parameters',
    proves: 'whether a client adds the charset changes nothing about the intent',
    routes: ['POST /charges'],
    run: alike('{"amount":5}', '{"amount":5}', 'application/json; charset=utf-8'),
  },
  {
    id: 'http-24f',
    title:
      'MUST tell apart what is not the same value: text and number, null and absent, order of a list, case, normal forms',
    proves: 'a comparison that is too generous replays the answer to another request',
    routes: ['POST /charges'],
    run: different(
      ['{"amount":5,"note":"1"}', '{"amount":5,"note":1}'],
      ['{"amount":5,"note":null}', '{"amount":5}'],
      ['{"amount":5,"tags":[1,2]}', '{"amount":5,"tags":[2,1]}'],
      ['{"amount":5,"a":1,"A":2}', '{"amount":5,"a":2,"A":1}'],
      ['{"amount":5,"note":"\u00e9"}', '{"amount":5,"note":"e\u0301"}'],
      ['{"amount":5,"note":""}', '{"amount":5,"note":false}'],
    ),
  },
  {
    id: 'http-24g',
    title: 'MUST tell numbers apart that are too large for a double',
    proves: 'account numbers that lose their last digit become one',
    routes: ['POST /charges'],
    run: different(['{"amount":5,"account":9007199254740993}', '{"amount":5,"account":9007199254740992}']),
  },
  {
    id: 'http-24h',
    title: 'MUST count members called __proto__ and constructor like any other',
    proves: 'a member that vanishes on the way to the fingerprint can be changed unseen',
    routes: ['POST /charges'],
    run: different(
      ['{"amount":5,"__proto__":{"to":1}}', '{"amount":5,"__proto__":{"to":2}}'],
      ['{"amount":5,"constructor":1}', '{"amount":5}'],
    ),
  },
  {
    id: 'http-28',
    title: 'MUST NOT refuse an honest retry of a form for its new boundary: replay it, or take no forms at all',
    proves: 'every attempt of a browser or a library draws another boundary',
    routes: ['POST /multipart'],
    async run(client, check) {
      const [user, key] = [client.user(), client.key()]
      const first = await user.send({ ...form('one-4711', 5), key })
      if (takesNoForms(first)) return check.effects(user, 0, 'effects of a form that is refused')
      check.first(first, 'the first')
      check.replay(await user.send({ ...form('another-0815', 5), key }), first, 'the same form')
      await check.effects(user, 1)
    },
  },
  {
    id: 'http-28b',
    title: 'MUST refuse another form under the same key',
    proves: 'what differs inside the parts counts',
    routes: ['POST /multipart'],
    async run(client, check) {
      const [user, key] = [client.user(), client.key()]
      const first = await user.send({ ...form('one-4711', 5), key })
      if (takesNoForms(first)) return
      check.first(first, 'the first')
      check.status(await user.send({ ...form('one-4711', 6), key }), 422, 'another form')
      await check.effects(user, 1)
    },
  },
  {
    id: 'http-30',
    title: 'MUST NOT count a member that the route leaves out, and count every other',
    proves: 'a timestamp of the attempt does not make a retry another request, and an amount does',
    routes: ['POST /charges'],
    async run(client, check) {
      const [user, key] = [client.user(), client.key()]
      const send = (body: object) => user.post('/charges', key, body)
      const first = await send({ amount: 5, clientTimestamp: 1 })
      check.first(first, 'the first')
      check.replay(await send({ amount: 5, clientTimestamp: 2 }), first, 'another clientTimestamp')
      check.replay(await send({ amount: 5 }), first, 'without clientTimestamp')
      check.status(await send({ amount: 6, clientTimestamp: 1 }), 422, 'another amount')
      check.status(await send({ amount: 5, note: { clientTimestamp: 2 } }), 422, 'the same name somewhere else')
      await check.effects(user, 1)
    },
  },
]
