// Whatever a server does to a request, on real sockets: nothing unguarded takes effect twice, one intent has one key
// and one body, and what the caller is told fits what happened.

import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { httpClient } from '../../src/http/client/index.js'
import { isRepriseError } from '../../src/kernel/index.js'
import { constantDelay } from '../../src/retry/index.js'
import { property } from '../property.js'
import {
  actsThenEnds,
  actsThenIsSilent,
  actsThenResets,
  answers,
  endsOnAccept,
  misbehavingServer,
  resetsOnAccept,
  type Step,
} from './sockets.js'

const json = JSON.stringify({ receipt: 17 })

/** What may befall a request. Only what a server may answer before it acts is answered by one that does not. */
const steps: Readonly<Record<string, Step>> = {
  'reset unread': resetsOnAccept,
  'closed unread': endsOnAccept,
  'acts, resets': actsThenResets,
  'acts, closes': actsThenEnds,
  'acts, is silent': actsThenIsSilent,
  'acts, 500': answers(500, { acts: true }),
  'acts, 503': answers(503, { acts: true }),
  503: answers(503),
  429: answers(429),
  421: answers(421),
  409: answers(409),
  404: answers(404),
  '200, cut': answers(200, { body: json, breaksOff: { afterBytes: 5, by: 'end' } }),
  '200, malformed': answers(200, { body: '<html>' }),
  '303': answers(303, { headers: { location: '/receipt' } }),
  '307': answers(307, { headers: { location: '/moved' }, acts: false }),
  200: answers(200, { body: json }),
}

const befalls = ['nothing', 'lost', 'refused', 'unavailable', 'unanswered', 'answered 500', 'answered 303'] as const
type Befalls = (typeof befalls)[number]

const script = fc.array(fc.constantFrom(...Object.keys(steps)), { minLength: 1, maxLength: 6 })
const how = fc.constantFrom('fetch', 'read')

/** Makes one call of three attempts against the script, and says what came of it on both sides. */
async function call(names: readonly string[], method: 'POST' | 'PUT', using: string, honours: boolean) {
  const server = await misbehavingServer([...names.map((name) => steps[name] as Step), answers(200, { body: json })])
  const client = httpClient({
    ...(honours && { honoursKeys: [server.origin] }),
    policy: { attempts: 3, backoff: constantDelay(0), attemptTimeout: 150 },
  })
  const init = { method, body: 'charge 4711' }
  try {
    const answer = using === 'fetch' ? client.fetch(server.origin, init) : client.read(server.origin, 'json', init)
    const told = await answer.then(
      (given) => ('response' in given ? given.response.status : given.status),
      (error: unknown) => (isRepriseError(error) ? error.code : (error as Error).name),
    )
    const writes = server.requests.filter((request) => request.method === method)
    return {
      told,
      effects: server.effects.filter((request) => request.method === method).length,
      // fetch sends what was answered 421 again by itself, over another connection (Fetch, 4.6).
      sent: writes.filter(({ path }) => path === '/').length - names.filter((name) => name === '421').length,
      intents: new Set(writes.map(({ headers, body }) => `${headers['idempotency-key']} ${body}`)).size,
      redirected: server.requests.some(({ path }) => path !== '/'),
    }
  } finally {
    await server.close()
  }
}

describe('whatever the server does', () => {
  property(
    'an unguarded POST takes effect at most once, and the caller is told no lie about it',
    [script, how],
    async (names, using) => {
      const { told, effects, sent, intents, redirected } = await call(names, 'POST', using, false)
      expect(effects).toBeLessThanOrEqual(1)
      expect(sent).toBeLessThanOrEqual(3)
      expect(intents).toBeLessThanOrEqual(1)
      // A success, or a body that says nothing: it happened.
      if (told === 200 || told === 'BODY_MALFORMED') expect(effects).toBe(1)
      // A refusal, or an error other than the one for what nobody knows: it did not. A redirect comes after an effect.
      const isDefinite = typeof told === 'number' ? told >= 400 && told < 500 : !/^(UNKNOWN_OUTCOME|BODY_)/.test(told)
      if (isDefinite && !redirected) expect(effects).toBe(0)
    },
    { cases: 200 },
  )

  property(
    'a guarded request is sent three times at most, under one key, and never ends as unknown',
    [script, how, fc.constantFrom('POST' as const, 'PUT' as const)],
    async (names, using, method) => {
      const { told, effects, sent, intents } = await call(names, method, using, method === 'POST')
      expect(sent).toBeLessThanOrEqual(3)
      expect(intents).toBeLessThanOrEqual(1)
      expect(told).not.toBe('UNKNOWN_OUTCOME')
      if (told === 200 || told === 'BODY_MALFORMED') expect(effects).toBeGreaterThanOrEqual(1)
    },
    { cases: 150 },
  )

  property(
    'a conditional update is written once at most, and the caller is told no lie about it',
    [fc.array(fc.tuple(fc.constantFrom(...befalls), fc.boolean()), { maxLength: 8 }), fc.boolean()],
    async (script, redirects) => {
      const { step, writes, state } = account(script, redirects)
      const server = await misbehavingServer(step)
      const client = httpClient({ policy: { attempts: 3, backoff: constantDelay(0) } })
      try {
        const told = await client
          .conditionalUpdate<Account>(`${server.origin}/account`, {
            change: ({ balance }) => ({ balance: balance + 10, by: 'us' }),
            // Somebody else may have written on top of ours.
            isOurs: ({ by }) => by === 'us' || undefined,
          })
          .then(
            ({ changed }) => changed,
            (error: unknown) => (isRepriseError(error) ? error.code : (error as Error).name),
          )
        expect(writes.ours).toBeLessThanOrEqual(1)
        if (told === true) expect(writes.ours).toBe(1)
        else if (told !== 'UNKNOWN_OUTCOME') expect(writes.ours).toBe(0)
        expect(state().balance).toBe(100 + 10 * writes.ours + writes.others)
      } finally {
        await server.close()
      }
    },
    { cases: 150 },
  )
})

interface Account {
  readonly balance: number
  readonly by: string
}

/** What may befall a write, and whether somebody else adds 1 before it arrives. */
function account(script: readonly (readonly [Befalls, boolean])[], redirects: boolean) {
  let state: Account = { balance: 100, by: 'nobody' }
  let version = 1
  let puts = 0
  const writes = { ours: 0, others: 0 }
  const step: Step = {
    request: (socket, { method, path, headers, body }) => {
      const answer = (status: number, text = '', location = '') =>
        socket.end(
          `HTTP/1.1 ${status} A\r\ncontent-length: ${text.length}\r\nconnection: close\r\netag: "v${version}"\r\n${location}\r\n${text}`,
        )
      const matches = headers['if-match'] === undefined || headers['if-match'] === `"v${version}"`
      if (method === 'GET') return void (matches ? answer(200, JSON.stringify(state)) : answer(412))
      if (redirects && path === '/account') return void answer(307, '', 'location: /moved\r\n')
      const [befalls, isOvertaken] = script[puts++] ?? ['nothing', false]
      if (isOvertaken) {
        state = { balance: state.balance + 1, by: 'others' }
        version += 1
        writes.others += 1
      }
      if (befalls === 'lost') return void socket.destroy()
      if (befalls === 'refused') return void answer(429)
      if (befalls === 'unavailable') return void answer(503)
      if (headers['if-match'] !== `"v${version}"`)
        return void (befalls === 'unanswered' ? socket.destroy() : answer(412))
      state = JSON.parse(body)
      version += 1
      writes.ours += 1
      if (befalls === 'unanswered') return void socket.resetAndDestroy()
      if (befalls === 'answered 500') return void answer(500)
      answer(
        ...((befalls === 'answered 303' ? [303, '', 'location: /account\r\n'] : [204]) as [number, string, string]),
      )
    },
  }
  return { step, writes, state: () => state }
}
