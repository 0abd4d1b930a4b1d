// Errors that look as if nothing had been sent, after something was: a refused connection behind a redirect, in the
// second turn of a loop, in a call after the charge. On real sockets, with the charges counted at the gateway.

import http from 'node:http'
import http2 from 'node:http2'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { httpClient } from '../../src/http/client/index.js'
import {
  didNotHappen,
  hold,
  type Lease,
  type LeasedOptions,
  leased,
  rerunKeyed,
  resolve,
} from '../../src/idempotency/index.js'
import { type Key, mintKey, scope } from '../../src/identity/index.js'
import { constantDelay, forCodes, keyed, type RetryPolicy, retryPolicy, transient } from '../../src/retry/index.js'
import { memory } from '../../src/stores/memory/index.js'
import {
  actsThenResets,
  answers,
  type MisbehavingServer,
  refusedPort,
  type Step,
  serversOfTest,
} from '../retry/sockets.js'
import { rejection } from '../transaction/scripted-world.js'

const server = serversOfTest()
const post = { method: 'POST', body: 'charge' }

/** A POST by node:http, over an agent. */
function nodePost(url: string, agent?: http.Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method: 'POST', ...(agent && { agent }) }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0))
    })
    request.on('error', reject).end('charge')
  })
}

interface World {
  readonly gateway: MisbehavingServer
  /** Where nobody listens. */
  readonly refused: string
}
type Recovery = NonNullable<LeasedOptions<Key, string, never>['recover']>
type Effect = (place: World) => Promise<unknown>

async function place(script: (refused: string) => Step | readonly Step[]): Promise<World> {
  const refused = `http://127.0.0.1:${await refusedPort()}/`
  return { gateway: await server(script(refused)), refused }
}

const charges = () => answers(200)
const redirects = (status: number) => (location: string) => answers(status, { headers: { location } })

/** An agent whose one socket is connected already. */
async function warmAgent(origin: string): Promise<http.Agent> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  await nodePost(origin, agent)
  return agent
}

// What the gateway does, and an effect that charges once and then fails like something that was never sent.
const traps: readonly (readonly [string, (refused: string) => Step | readonly Step[], Effect])[] = [
  ...[302, 303, 307, 308].map(
    (status) =>
      [
        `a ${status} to a host that refuses`,
        redirects(status),
        ({ gateway }: World) => fetch(gateway.origin, post),
      ] as const,
  ),
  [
    'a loop of its own: the answer lost, then refused',
    () => actsThenResets,
    async ({ gateway, refused }) => {
      await fetch(gateway.origin, post).catch(() => undefined)
      return fetch(refused, post)
    },
  ],
  [
    'a loop of its own: the answer lost, then 429',
    () => [actsThenResets, answers(429)],
    async ({ gateway }) => {
      await fetch(gateway.origin, post).catch(() => undefined)
      throw Object.assign(new Error('too many'), { response: await fetch(gateway.origin, post) })
    },
  ],
  [
    'a second call that is refused after the charge',
    charges,
    async ({ gateway, refused }) => {
      await fetch(gateway.origin, post)
      return fetch(refused, post)
    },
  ],
  [
    'a second call that is refused while the charge is out',
    () => answers(200, { lateMs: 100 }),
    ({ gateway, refused }) => Promise.all([fetch(gateway.origin, post), fetch(refused, post)]),
  ],
  [
    'node:http: the answer lost, then refused',
    () => actsThenResets,
    async ({ gateway, refused }) => {
      await nodePost(gateway.origin).catch(() => undefined)
      return nodePost(refused)
    },
  ],
  [
    'fetch for the charge, node:http for what is refused',
    charges,
    async ({ gateway, refused }) => {
      await fetch(gateway.origin, post)
      return nodePost(refused)
    },
  ],
  [
    'a policy of its own inside: the answer lost, then refused',
    () => actsThenResets,
    ({ gateway, refused }) => {
      const inner = retryPolicy({ attempts: 2, budget: false })
      return inner.run(keyed(mintKey()), ({ number }) => fetch(number === 1 ? gateway.origin : refused, post))
    },
  ],
  [
    'a client of ours inside, whose fetch follows the redirect out of its sight',
    redirects(307),
    ({ gateway }) =>
      httpClient({ fetch: (url, init) => fetch(url, { ...init, redirect: 'follow' }) }).fetch(gateway.origin, post),
  ],
]

// Under resolve() it cannot be found, and nobody says that it did not happen.
const recoveries: Readonly<Record<string, Recovery>> = {
  'hold()': hold(),
  'resolve()': resolve(() => Promise.reject(new Error('cannot tell'))),
}

function operation(recover: Recovery, run: (lease: Lease) => Promise<unknown>): (key: Key) => Promise<string> {
  return leased<Key, string, never>('charge', {
    store: memory({ name: 'shop' }),
    scope: () => scope('north', 'charges'),
    key: (key: Key) => key,
    content: 'none',
    window: '7d',
    lease: '30s',
    reversibility: 'irreversible',
    recover,
    run: async (lease) => {
      await run(lease)
      return 'charged'
    },
  })
}

const codeOf = (error: unknown): unknown => (error as { readonly code?: unknown }).code

describe.each(Object.entries(recoveries))('a leased operation under %s', (_name, recover) => {
  it.each(traps)('charges once in three calls: %s', async (_trap, script, effect) => {
    const where = await place(script)
    const charge = operation(recover, (lease) => lease.effect('capture', () => effect(where)))
    const key = mintKey()
    const heard: unknown[] = []
    for (let call = 0; call < 3; call += 1) heard.push(codeOf(await rejection(charge(key))))
    expect(heard).toEqual(['OPERATION_UNKNOWN', 'OPERATION_UNKNOWN', 'OPERATION_UNKNOWN'])
    await expect.poll(() => where.gateway.effects).toHaveLength(1)
  })
})

describe('a leased operation', () => {
  it('under rerunKeyed sends each repeat under the key of the first', async () => {
    const where = await place(redirects(307))
    const charge = operation(rerunKeyed('1h'), (lease) =>
      lease.effect('capture', ({ key }) =>
        fetch(where.gateway.origin, { ...post, headers: { 'idempotency-key': key } }),
      ),
    )
    const key = mintKey()
    for (let call = 0; call < 3; call += 1) {
      expect(await rejection(charge(key))).toMatchObject({ code: 'OPERATION_UNKNOWN' })
    }
    expect(new Set(where.gateway.effects.map(({ headers }) => headers['idempotency-key'])).size).toBe(1)
  })

  it('charges once over a socket that was connected before', async () => {
    const where = await place(() => answers(200, { keepAlive: true }))
    const agent = await warmAgent(where.gateway.origin)
    const charge = operation(hold(), (lease) =>
      lease.effect('capture', async () => {
        await nodePost(where.gateway.origin, agent)
        return nodePost(where.refused)
      }),
    )
    const key = mintKey()
    for (let call = 0; call < 3; call += 1) {
      expect(await rejection(charge(key))).toMatchObject({ code: 'OPERATION_UNKNOWN' })
    }
    expect(where.gateway.connections).toBe(1)
    expect(where.gateway.effects).toHaveLength(2) // the first warmed the socket
    agent.destroy()
  })

  const unsent: readonly (readonly [string, Effect])[] = [
    ['fetch', ({ refused }) => fetch(refused, post)],
    ['node:http', ({ refused }) => nodePost(refused)],
    [
      'a policy that met refusals alone',
      async ({ gateway, refused }) => {
        const inner = retryPolicy({ attempts: 2, backoff: constantDelay(1) })
        return inner.run(keyed(mintKey()), async ({ number }) => {
          if (number === 2) return fetch(refused, post)
          throw await fetch(`${gateway.origin}/busy`, post)
        })
      },
    ],
  ]
  it.each(unsent)('frees the key where nothing left, also beside traffic of others: %s', async (_how, effect) => {
    const where = await place(() => answers(429))
    const busy = await server(answers(200))
    let stop = false
    const others = (async () => {
      while (!stop) await fetch(busy.origin, post)
    })()
    const charge = operation(hold(), (lease) => lease.effect('capture', () => effect(where)))
    const key = mintKey()
    for (let call = 0; call < 3; call += 1) {
      expect(String(codeOf(await rejection(charge(key))))).not.toBe('OPERATION_UNKNOWN')
    }
    stop = true
    await others
    expect(busy.effects.length).toBeGreaterThan(0)
    expect(where.gateway.effects).toHaveLength(0)
  })

  const unseen: readonly (readonly [string, (port: number) => Promise<unknown>])[] = [
    ['a raw socket', (port) => new Promise((_, reject) => connect(port, '127.0.0.1').on('error', reject))],
    ['http2', (port) => new Promise((_, reject) => http2.connect(`http://127.0.0.1:${port}`).on('error', reject))],
  ]
  it.each(unseen)('takes the word of the body for %s, and no error', async (_how, dial) => {
    const port = await refusedPort()
    const silent = operation(hold(), (lease) => lease.effect('capture', () => dial(port)))
    expect(await rejection(silent(mintKey()))).toMatchObject({ code: 'OPERATION_UNKNOWN' })
    const declared = operation(hold(), (lease) =>
      lease.effect('capture', () => dial(port)).catch((error) => Promise.reject(lease.notSent(error))),
    )
    expect(await rejection(declared(mintKey()))).toMatchObject({ code: 'ECONNREFUSED' })
  })

  it('asks what happened after a redirect to a host that refuses, and charges again only where it did not', async () => {
    const where = await place(redirects(307))
    let asked = 0
    const recover = resolve<Key, string>(() => {
      asked += 1
      return didNotHappen()
    })
    const charge = operation(recover, (lease) => lease.effect('capture', () => fetch(where.gateway.origin, post)))
    const key = mintKey()
    await rejection(charge(key))
    await rejection(charge(key))
    expect([asked, where.gateway.effects.length]).toEqual([1, 2])
  })
})

describe('an unguarded call of a policy', () => {
  const policy = (): RetryPolicy => retryPolicy({ attempts: 3, backoff: constantDelay(1) })

  it.each(traps)('charges once: %s', async (_trap, script, effect) => {
    const where = await place(script)
    const error = await rejection(policy().once(() => effect(where)))
    expect(error).toMatchObject({ code: 'UNKNOWN_OUTCOME' })
    await expect.poll(() => where.gateway.effects).toHaveLength(1)
  })

  it('is repeated where nothing left, and where the one request that did was refused', async () => {
    const { gateway, refused } = await place(() => [answers(429), answers(429), answers(200)])
    const error = await rejection(policy().once(() => fetch(refused, post)))
    expect(error).toMatchObject({ cause: { code: 'ECONNREFUSED' } })
    const client = httpClient({ policy: { attempts: 3, backoff: constantDelay(1) } })
    expect((await client.fetch(gateway.origin, post)).status).toBe(200)
    expect(gateway.requests).toHaveLength(3)
  })

  it('is repeated after a raw socket was refused only where the caller says what that means', async () => {
    const port = await refusedPort()
    let dials = 0
    const dial = () => {
      dials += 1
      return new Promise((_, reject) => connect(port, '127.0.0.1').on('error', reject))
    }
    expect(await rejection(policy().once(dial))).toMatchObject({ code: 'UNKNOWN_OUTCOME' })
    expect(dials).toBe(1)
    const declared = retryPolicy({
      attempts: 3,
      backoff: constantDelay(1),
      classify: forCodes({ ECONNREFUSED: transient('refused', 'no') }),
    })
    expect(await rejection(declared.once(dial))).toMatchObject({ code: 'ECONNREFUSED' })
    expect(dials).toBe(4)
  })
})
