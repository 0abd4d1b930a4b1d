// What other layers for Idempotency-Key were seen to do over HTTP, and what every adapter does on the same requests.
// The ids name the observations as in test/idempotency/peers-bugs.test.ts: NI node-idempotency, HI hono-idempotency, EI
// express-idempotency, IJ idempot-js, PT Powertools for TypeScript. None of them is run here; where `npm run peers` has
// run one, its results must show the bug, so that a case that cannot find it is found out.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type HttpCase, httpCaseClient, httpCaseRunner, httpCases } from '../../src/testing/index.js'
import { peerResults } from '../http-peers.js'
import type { Served } from './subject/mounted.js'
import { adapterNames, startSubject } from './subject/subject.js'

/**
 * A bug: what is right in its place, the cases that look for it, and by which of the peers that were run it is failed,
 * if any.
 */
type Bug = readonly [what: string, ids: readonly string[], failedBy: readonly string[]]

const bugs: readonly Bug[] = [
  ['NI-EX1, NI-EX2: an empty body is an answer, and replayed', ['http-31', 'http-31b'], ['node-idempotency']],
  ['NI-EX3: an answer that was ended without a body is complete', ['http-31b', 'http-32'], ['node-idempotency']],
  ['NI-EX4, IJ3: a 500 is not replayed', ['http-40'], ['node-idempotency', 'idempot-js']],
  ['NI-EX5, PT6: the order of members does not matter', ['http-24', 'http-24d'], ['node-idempotency']],
  ['NI-EX6: Location is replayed', ['http-18', 'http-32'], ['node-idempotency', 'express-idempotency']],
  ['NI-EX7, HI1: bytes are bytes', ['http-16b', 'http-16c'], ['node-idempotency', 'hono-idempotency', 'idempot-js']],
  [
    'NI-EX8, IJ2: the same key of another user is another intent',
    ['http-67', 'http-67b'],
    ['node-idempotency', 'idempot-js'],
  ],
  ['NI-FA1: a mismatch leaves the record as it is', ['http-20', 'http-20b'], []],
  ['HI2, HI3: a redirect and a final refusal are kept', ['http-32', 'http-39', 'http-39b'], ['hono-idempotency']],
  ['HI4: another query is another request', ['http-23', 'http-23b', 'http-23c'], ['hono-idempotency', 'idempot-js']],
  ['HI5: of many at once one is carried out', ['http-45', 'http-45b', 'http-45d'], []],
  ['IJ1: the same body under another key is another intent', ['http-50'], ['idempot-js']],
  ['PT1, PT2: an identical repeat is a replay, also at once', ['http-16', 'http-17', 'http-45b'], []],
  ['PT4: who is nobody gets nothing', ['http-69'], []],
  ['PT7, PT8: __proto__ and every digit count', ['http-24g', 'http-24h'], []],
]

const caseOf = (id: string): HttpCase => httpCases.find((one) => one.id === id) as HttpCase

it.each(bugs.filter(([, , failedBy]) => failedBy.length > 0))('%s: the cases find it', (_what, ids, failedBy) => {
  for (const peer of failedBy)
    expect(
      ids.map((id) => peerResults[peer]?.results[id]?.outcome),
      peer,
    ).toContain('failed')
})

describe.each(adapterNames)('on %s', (adapter) => {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-peers-bugs-'))
  let served: Served
  beforeAll(async () => {
    served = await startSubject(adapter, `sqlite:${join(folder, 'store.db')}`, { sink: join(folder, 'sink') })
  })
  afterAll(async () => {
    await served.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it.each(bugs)('%s', async (_what, ids) => {
    const runner = httpCaseRunner(httpCaseClient({ urls: [served.url] }))
    const ends = []
    for (const id of ids) ends.push([id, await runner.run(caseOf(id))])
    expect(ends).toEqual(ids.map((id) => [id, { outcome: 'passed' }]))
  })

  it('NI-EX6: every field that the answer had for its content comes back, to the letter, each time', async () => {
    const client = httpCaseClient({ urls: [served.url] })
    for (const path of ['/charges', '/leased/charges', '/redirect303', '/empty201']) {
      const [user, key] = [client.user(), client.key()]
      const first = await user.post(path, key)
      expect(first.header('Location'), path).toMatch(/^\/charges\/[0-9a-f-]{36}$/)
      for (const again of [await user.post(path, key), await user.post(path, key)]) {
        expect(again.header('Idempotent-Replayed'), path).toBe('true')
        expect(again.fields('Location'), path).toEqual(first.fields('Location'))
        for (const name of ['ETag', 'Content-Type']) expect(again.header(name), path).toBe(first.header(name))
      }
      expect(await user.effects()).toBe(1)
    }
  })

  it('NI-FA2: the 409 of a duplicate is not kept for those who come after it', async () => {
    const client = httpCaseClient({ urls: [served.url] })
    const [user, key] = [client.user(), client.key()]
    const send = () => user.post('/leased/slow?ms=300', key)
    const both = await Promise.all([send(), send()])
    // Whichever of them was first: the other came while it worked.
    expect(both.map(({ status }) => status).sort()).toEqual([201, 409])
    const [first, refused] = both[0]?.status === 201 ? both : [both[1], both[0]]
    expect(refused?.header('Idempotent-Replayed')).toBeUndefined()
    const third = await send()
    expect([third.status, third.header('Idempotent-Replayed')]).toEqual([201, 'true'])
    expect([third.body.equals(first?.body as Buffer), await user.effects()]).toEqual([true, 1])
  })

  it('EI1: no field of a request is taken for a state of ours', async () => {
    const client = httpCaseClient({ urls: [served.url] })
    const [user, key] = [client.user(), client.key()]
    const headers = { 'x-hit': 'true', 'idempotent-replayed': 'true' }
    const send = () => user.send({ path: '/charges', key, body: '{"amount":5}', headers })
    const first = await send()
    expect([first.status, first.header('Idempotent-Replayed'), await user.effects()]).toEqual([201, undefined, 1])
    const again = await send()
    expect([again.body.equals(first.body), again.header('Idempotent-Replayed')]).toEqual([true, 'true'])
    expect(await user.effects()).toBe(1)
  })
})
