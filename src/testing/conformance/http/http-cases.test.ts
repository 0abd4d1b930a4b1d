import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Plant } from '../../../../test/http/conformance/memory-subject.js'
import { memorySubject } from '../../../../test/http/conformance/memory-subject.js'
import { controlledHttpCases } from './cases/controlled-cases.js'
import { type HttpCase, type HttpCaseOutcome, httpCaseRunner } from './http-case.js'
import { httpCaseClient } from './http-case-client.js'
import { httpCases } from './http-cases.js'

const caseOf = (id: string): HttpCase => httpCases.find((one) => one.id === id) as HttpCase

async function outcomes(ids: readonly string[], url: string): Promise<readonly HttpCaseOutcome[]> {
  const runner = httpCaseRunner(httpCaseClient({ urls: [url] }))
  const ends: HttpCaseOutcome[] = []
  for (const id of ids) ends.push(await runner.run(caseOf(id)))
  return ends
}

describe('the HTTP cases', () => {
  const all = [...httpCases, ...controlledHttpCases]

  it('have stable ids, once each, and titles that say MUST or SHOULD', () => {
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
    expect(all.filter(({ id }) => !/^http-\d\d[b-z]?$/.test(id))).toEqual([])
    expect(all.filter(({ title }) => !/^(MUST|SHOULD)( NOT)? /.test(title))).toEqual([])
    expect(all.length).toBeGreaterThan(80)
  })

  it('have a first of each family before its relatives', () => {
    const families = new Set(all.map(({ id }) => id.slice(0, 'http-00'.length)))
    expect([...families].filter((id) => !all.some((one) => one.id === id))).toEqual([])
  })

  it('pass on the plain subject, but for those that take two processes', async () => {
    const url = await memorySubject()
    const ends = await outcomes(
      httpCases.map(({ id }) => id),
      url,
    )
    const told = httpCases.map(({ id }, place) => ({ id, ...(ends[place] as HttpCaseOutcome) }))
    expect(told.filter(({ outcome }) => outcome === 'failed')).toEqual([])
    expect(told.filter(({ outcome }) => outcome === 'not offered').map(({ id }) => id)).toEqual([
      'http-46',
      'http-46b',
      'http-46c',
    ])
  })
})

/** Bugs, each with the cases that must catch it. */
const bugs: readonly (readonly [what: string, plant: Plant, caughtBy: readonly string[]])[] = [
  [
    'fields of one name are joined, as many frameworks do',
    { request: (request) => void joinKeys(request.headersDistinct) },
    ['http-10', 'http-10b'],
  ],
  [
    'only the first of several fields counts',
    { request: ({ headersDistinct }) => void headersDistinct['idempotency-key']?.splice(1) },
    ['http-10', 'http-10b'],
  ],
  [
    'keys are compared without case',
    { request: ({ headersDistinct }) => void eachKey(headersDistinct, (key) => key.toLowerCase()) },
    ['http-11'],
  ],
  [
    'keys are cut',
    { request: ({ headersDistinct }) => void eachKey(headersDistinct, (key) => key.slice(0, 36)) },
    ['http-08', 'http-11b'],
  ],
  ['NI-EX8, IJ2: all users are one', { principal: () => 'everybody' }, ['http-67', 'http-67b', 'http-68']],
  [
    'users and keys are joined by a colon',
    {
      request: (request) =>
        void eachKey(request.headersDistinct, (key) => `${request.headers.authorization?.slice(7)}:${key}`),
      principal: () => 'everybody',
    },
    ['http-67c'],
  ],
  [
    'HI4: the query does not count',
    { request: (request) => void Object.assign(request, { url: request.url?.split('?')[0] }) },
    ['http-23', 'http-23b', 'http-23c'],
  ],
  [
    'every field is replayed, cookies too',
    { answer: (answer) => ({ ...answer, headers: [...answer.headers, ['set-cookie', 'session=1']] }) },
    ['http-19'],
  ],
  [
    'replays are not marked',
    { answer: (answer) => ({ ...answer, headers: answer.headers.filter(([name]) => name !== 'idempotent-replayed') }) },
    ['http-16', 'http-17'],
  ],
  [
    'NI-EX6: Location is lost on the way',
    {
      answer: (answer) => ({
        ...answer,
        headers: answer.headers.filter(([name]) => name !== 'location' || !isReplay(answer.headers)),
      }),
    },
    ['http-18', 'http-32'],
  ],
  [
    'NI-EX7, HI1: bodies are taken for text',
    { answer: (answer) => ({ ...answer, body: Buffer.from(Buffer.from(answer.body as Uint8Array).toString()) }) },
    ['http-16b', 'http-16c'],
  ],
  [
    'refusals are plain text',
    { answer: (answer) => (answer.status >= 400 ? { ...answer, headers: [['content-type', 'text/plain']] } : answer) },
    ['http-01', 'http-20'],
  ],
  [
    'refusals do not say when to come back',
    { answer: (answer) => ({ ...answer, headers: answer.headers.filter(([name]) => name !== 'retry-after') }) },
    ['http-45', 'http-48b', 'http-53'],
  ],
  [
    'the key is not passed on',
    { request: ({ headersDistinct }) => void eachKey(headersDistinct, () => crypto.randomUUID()) },
    ['http-16', 'http-17', 'http-20', 'http-31', 'http-39', 'http-45', 'http-45c', 'http-48', 'http-41b', 'http-44b'],
  ],
]

const isReplay = (headers: readonly (readonly [string, string])[]): boolean =>
  headers.some(([name]) => name === 'idempotent-replayed')

function eachKey(fields: NodeJS.Dict<string[]>, change: (key: string) => string): void {
  const keys = fields['idempotency-key']
  if (keys !== undefined) fields['idempotency-key'] = keys.map(change)
}

function joinKeys(fields: NodeJS.Dict<string[]>): void {
  const keys = fields['idempotency-key']
  if (keys !== undefined && keys.length > 1) fields['idempotency-key'] = [keys.join('-')]
}

describe('a bug is caught:', () => {
  it.each(bugs)('%s', async (_what, plant, caughtBy) => {
    const ends = await outcomes(caughtBy, await memorySubject({ plant }))
    expect(caughtBy.map((id, place) => [id, ends[place]?.outcome])).toEqual(caughtBy.map((id) => [id, 'failed']))
  })

  it('failures that pass are remembered, and those that are final are not', async () => {
    const turned = await memorySubject({ more: { stores: (status) => status === 429 } })
    const ends = await outcomes(['http-43', 'http-39', 'http-39b'], turned)
    expect(ends.map(({ outcome }) => outcome)).toEqual(Array.from(ends, () => 'failed'))
  })

  it('nothing is left out of the comparison, or too much is', async () => {
    const whole = await memorySubject({ more: { fields: { omit: ['/nothing-of-the-kind'] } } })
    const little = await memorySubject({ more: { fields: { only: ['/amount'] } } })
    expect((await outcomes(['http-30'], whole))[0]).toMatchObject({ outcome: 'failed' })
    const ends = await outcomes(['http-24f', 'http-24g', 'http-24h'], little)
    expect(ends.map(({ outcome }) => outcome)).toEqual(['failed', 'failed', 'failed'])
  })
})

describe('a subject that', () => {
  /** A server that answers everything in one way. */
  async function always(status: number): Promise<string> {
    const server = createServer((_request, response) => void response.writeHead(status).end())
    await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
    onTestFinished(() => void server.close())
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  it('lacks routes does not offer their cases, and never passes them', async () => {
    expect(await outcomes(['http-16', 'http-13'], await always(404))).toEqual([
      { outcome: 'not offered', why: 'there is no GET /effects' },
      { outcome: 'not offered', why: 'there is no GET /effects' },
    ])
  })

  it('answers something else fails with what was seen', async () => {
    expect(await outcomes(['http-15'], await always(200))).toEqual([
      { outcome: 'failed', why: 'the first: "200", and should be "201"' },
    ])
  })

  it('is not there, or never answers, fails', async () => {
    const runner = httpCaseRunner(httpCaseClient({ urls: ['http://127.0.0.1:9'] }))
    expect(await runner.run(caseOf('http-15'))).toEqual({
      outcome: 'failed',
      why: 'GET /effects: no answer: ECONNREFUSED',
    })
    const silent = createServer(() => undefined)
    await new Promise<void>((ready) => silent.listen(0, '127.0.0.1', ready))
    onTestFinished(() => {
      silent.closeAllConnections()
      silent.close()
    })
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
    const impatient = httpCaseRunner(httpCaseClient({ urls: [url], limitMs: 50 }))
    expect(await impatient.run(caseOf('http-15'))).toEqual({
      outcome: 'failed',
      why: 'GET /effects: no answer within 50 ms',
    })
  })
})
