// Group B, first part: the first request, and what its repeats get.

import type { HttpCase } from '../http-case.js'
import type { SubjectAnswer } from '../http-case-client.js'

/** The first answer is a success, and a repeat has its status and bytes. Further checks may be given. */
function repeats(
  path: string,
  status: number | readonly number[],
  more: (first: SubjectAnswer, again: SubjectAnswer) => readonly (readonly [holds: boolean, what: string])[] = () => [],
): HttpCase['run'] {
  return async (client, check) => {
    const [user, key] = [client.user(), client.key()]
    const first = await user.post(path, key)
    check.status(first, status, 'the first')
    check.unmarked(first, 'the first')
    const again = await user.post(path, key)
    check.replay(again, first, 'the repeat')
    for (const [condition, what] of more(first, again)) check.holds(condition, what)
    await check.effects(user, 1)
  }
}

const sameField = (name: string) => (first: SubjectAnswer, again: SubjectAnswer) => [
  [again.header(name) === first.header(name), `the same ${name}`] as const,
]

/** Content-Length is right, or the body is framed in another way, but never both. */
function framing(answer: SubjectAnswer): boolean {
  const [lengths, encoding] = [answer.fields('Content-Length'), answer.header('Transfer-Encoding')]
  if (lengths.length === 0) return true
  return encoding === undefined && lengths.length === 1 && Number(lengths[0]) === answer.body.length
}

/** Cases about first requests and repeats. */
export const replayCases: readonly HttpCase[] = [
  {
    id: 'http-15',
    title: 'MUST carry the first request out, once, and not call it a replay',
    proves: 'the layer is not in the way of a service that works',
    routes: ['POST /charges'],
    async run(client, check) {
      const user = client.user()
      const first = await user.post('/charges', client.key())
      check.status(first, 201, 'the first')
      check.first(first, 'the first')
      check.same((first.json() as { amount?: unknown } | undefined)?.amount, 5, 'what the handler read of the body')
      await check.effects(user, 1)
    },
  },
  {
    id: 'http-16',
    title: 'MUST answer a repeat with the same status and bytes, marked Idempotent-Replayed: true',
    proves: 'a client that lost the answer gets it, and can tell',
    routes: ['POST /charges'],
    async run(client, check) {
      const [user, key] = [client.user(), client.key()]
      const first = await user.post('/charges', key)
      const again = await user.post('/charges', key)
      check.first(first, 'the first')
      check.replay(again, first, 'the repeat')
      check.marked(again, 'the repeat')
      await check.effects(user, 1)
    },
  },
  {
    id: 'http-16b',
    title: 'MUST replay bytes that are not text',
    proves: 'a store of text corrupts what is no text, on the repeat or even at first',
    routes: ['POST /binary'],
    run: repeats('/binary', [200, 201], (first) => [
      [first.body.equals(Buffer.from([0xff, 0xfe, 0x00, 0x01, 0x80])), 'the first has the bytes ff fe 00 01 80'],
    ]),
  },
  {
    id: 'http-16c',
    title: 'MUST replay a compressed body with its Content-Encoding',
    proves: 'a repeat that lost the encoding is noise to the client',
    routes: ['POST /gzip'],
    run: repeats('/gzip', [200, 201], (first, again) => [
      [first.header('Content-Encoding') === 'gzip', 'the first is compressed'],
      [first.body.subarray(0, 2).equals(Buffer.from([0x1f, 0x8b])), 'the first has the bytes of gzip'],
      [again.header('Content-Encoding') === 'gzip', 'the repeat says so too'],
    ]),
  },
  {
    id: 'http-16d',
    title: 'MUST replay on a leased route too',
    proves: 'an effect outside the store is not repeated either',
    routes: ['POST /leased/charges'],
    run: repeats('/leased/charges', 201),
  },
  {
    id: 'http-17',
    title: 'MUST answer every further repeat alike',
    proves: 'a record is not used up',
    routes: ['POST /charges'],
    async run(client, check) {
      const [user, key] = [client.user(), client.key()]
      const first = await user.post('/charges', key)
      check.first(first, 'the first')
      for (let number = 1; number <= 10; number += 1) {
        const again = await user.post('/charges', key)
        check.replay(again, first, `repeat ${number}`)
        check.marked(again, `repeat ${number}`)
      }
      await check.effects(user, 1)
    },
  },
  {
    id: 'http-18',
    title: 'MUST replay Location, Content-Type and ETag, and frame the repeat for its own connection',
    proves: 'a client that follows Location finds the resource also after a repeat',
    routes: ['POST /charges'],
    run: repeats('/charges', 201, (first, again) => [
      [first.header('Location') !== undefined, 'the first has a Location'],
      ...['Location', 'Content-Type', 'ETag'].flatMap((name) => sameField(name)(first, again)),
      [framing(first) && framing(again), 'a Content-Length that is right'],
      [again.fields('Date').length <= 1, 'one Date at most'],
      [again.header('WWW-Authenticate') === undefined, 'no WWW-Authenticate'],
    ]),
  },
  {
    id: 'http-18b',
    title: 'SHOULD forbid caches to keep a replay',
    proves: 'nobody between answers the next client with it',
    routes: ['POST /charges'],
    run: repeats('/charges', 201, (_first, again) => [
      [/no-store/.test(again.header('Cache-Control') ?? ''), 'Cache-Control: no-store'],
    ]),
  },
  {
    id: 'http-19',
    title: 'MUST NOT replay Set-Cookie',
    proves: 'a session of yesterday does not come back with the answer',
    routes: ['POST /setcookie'],
    run: repeats('/setcookie', [200, 201], (first, again) => [
      [first.fields('Set-Cookie').length > 0, 'the first sets a cookie'],
      [again.fields('Set-Cookie').length === 0, 'the repeat does not'],
    ]),
  },
  {
    id: 'http-31',
    title: 'MUST remember a 204',
    proves: 'an empty body is a body: a layer that tests it for truth runs the handler again',
    routes: ['POST /empty204'],
    run: repeats('/empty204', 204, (first, again) => [[first.body.length + again.body.length === 0, 'no body']]),
  },
  {
    id: 'http-31b',
    title: 'MUST remember a 201 without a body',
    proves: 'the same, where a body would be allowed',
    routes: ['POST /empty201'],
    run: repeats('/empty201', 201, (first, again) => [[first.body.length + again.body.length === 0, 'no body']]),
  },
  {
    id: 'http-32',
    title: 'MUST remember a 303, with its Location',
    proves: 'a form that redirects after its effect is not sent twice',
    routes: ['POST /redirect303'],
    run: repeats('/redirect303', 303, (first, again) => [
      [first.header('Location') !== undefined, 'the first has a Location'],
      ...sameField('Location')(first, again),
    ]),
  },
  {
    id: 'http-34',
    title: 'MUST NOT run a handler again that streamed its answer: replay it, or say that it was not kept',
    proves: 'what cannot be kept is not done twice because of it',
    routes: ['POST /stream'],
    run: notTwice('/stream', 1),
  },
  {
    id: 'http-35',
    title: 'MUST hand out a large answer in full, and replay it or say that it was not kept',
    proves: 'the limit of the store is not the limit of the service, and never a reason to do it twice',
    routes: ['POST /large'],
    run: notTwice('/large?bytes=600000', 600_000),
  },
  {
    id: 'http-35b',
    title: 'MUST do so for every further repeat of a large answer',
    proves: 'a tombstone stays one',
    routes: ['POST /large'],
    run: notTwice('/large?bytes=300000', 300_000, 4),
  },
]

function notTwice(path: string, leastBytes: number, times = 1): HttpCase['run'] {
  return async (client, check) => {
    const [user, key] = [client.user(), client.key()]
    const first = await user.post(path, key)
    check.first(first, 'the first')
    check.holds(first.body.length >= leastBytes, `the first has at least ${leastBytes} bytes`)
    for (let number = 0; number < times; number += 1) {
      const again = await user.post(path, key)
      if (again.status === first.status) check.replay(again, first, 'the repeat')
      else check.problem(again, [409, 410, 413], 'the repeat')
    }
    await check.effects(user, 1)
  }
}
