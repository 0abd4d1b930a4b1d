// A resource with an ETag on a real socket; some writes are carried out and their answers lost.

import { afterEach, describe, expect, it } from 'vitest'
import { type MisbehavingServer, misbehavingServer, type Step } from '../../../test/retry/sockets.js'
import { openScopes } from '../../kernel/index.js'
import { constantDelay, hedging, layerScope, repeatable, UnknownOutcomeError } from '../../retry/index.js'
import { manualClock } from '../../testing/index.js'
import { type HttpClientOptions, httpClient } from './index.js'

interface Account {
  readonly balance: number
  readonly by?: string
  readonly token?: string
}

type Fault = 'lost-answer' | 'lost-request' | 'none'

const open: MisbehavingServer[] = []
afterEach(async () => {
  for (const server of open.splice(0)) await server.close()
})

/** An account with a version; what befalls each PUT in turn, and what somebody else writes right after it. */
async function account(
  faults: readonly Fault[],
  others: readonly (Account | undefined)[] = [],
  tag = (v: number) => `"v${v}"`,
) {
  let state: Account = { balance: 100 }
  let version = 1
  let puts = 0
  const step: Step = {
    request: (socket, { method, headers, body }, act) => {
      const answer = (status: number, text = '') =>
        socket.end(
          `HTTP/1.1 ${status} A\r\ncontent-length: ${text.length}\r\nconnection: close\r\netag: ${tag(version)}\r\n\r\n${text}`,
        )
      if (method === 'GET') return void answer(200, JSON.stringify(state))
      const fault = faults[puts] ?? 'none'
      const other = others[puts]
      puts++
      if (fault === 'lost-request') return void socket.destroy()
      const matches = headers['if-match'] === tag(version)
      if (matches) {
        act()
        state = JSON.parse(body)
        version++
      }
      const status = matches ? 204 : 412
      if (fault === 'lost-answer') socket.resetAndDestroy()
      else socket.end(`HTTP/1.1 ${status} A\r\nconnection: close\r\n\r\n`)
      if (other !== undefined) {
        state = other
        version++
      }
    },
  }
  const server = await misbehavingServer(step)
  open.push(server)
  return {
    url: `${server.origin}/account`,
    effects: server.effects,
    requests: server.requests,
    state: () => state,
    interfere(next: Account) {
      state = next
      version++
    },
  }
}

const client = (options: HttpClientOptions = {}) =>
  httpClient({ ...options, policy: { backoff: constantDelay(1), ...options.policy } })
const deposit = ({ balance, ...rest }: Account): Account => ({ ...rest, balance: balance + 10 })

/** A deposit with a token that nobody else writes. */
const marked = {
  change: (current: Account): Account => ({ ...deposit(current), token: 'ours-1' }),
  isOurs: ({ token }: Account): boolean => token === 'ours-1',
}

describe('conditionalUpdate', () => {
  it('reads, changes and writes under the tag', async () => {
    const { url, effects, requests, state } = await account([])
    const update = await client().conditionalUpdate(url, { change: deposit })
    expect(update).toEqual({ changed: true, value: { balance: 110 }, rounds: 1 })
    // What a cache kept is not the present state.
    expect(requests[0]).toMatchObject({ method: 'GET', headers: { 'cache-control': 'no-cache' } })
    expect(effects).toMatchObject([
      { method: 'PUT', headers: { 'if-match': '"v1"', 'content-type': 'application/json' } },
    ])
    expect(state()).toEqual({ balance: 110 })
  })

  it('never hedges, and neither does any request with a precondition', async () => {
    const { url, effects, requests, state } = await account([])
    let least = 0
    const slow: typeof fetch = async (input, init) => {
      const response = await fetch(input, init)
      await new Promise((resolve) => setTimeout(resolve, 150))
      await expect.poll(() => requests.length).toBeGreaterThanOrEqual(least)
      return response
    }
    const hedged = client({ fetch: slow, policy: { hedge: hedging({ after: 20 }) } })
    expect(await hedged.conditionalUpdate(url, { change: deposit })).toMatchObject({ changed: true, rounds: 1 })
    expect(effects).toHaveLength(1)
    expect(state()).toEqual({ balance: 110 })
    expect(requests.map(({ method }) => method)).toEqual(['GET', 'PUT'])

    const init = { method: 'PUT', body: '{"balance":1}', headers: { 'if-match': '"v2"' } }
    expect((await hedged.fetch(url, init)).status).toBe(204)
    await hedged.fetch(url, { ...init, guard: repeatable('sets the balance') })
    expect(requests).toHaveLength(4)
    // Where it may hedge it does: the first answer is held back until the hedge has arrived.
    least = 6
    await hedged.fetch(url)
    expect(requests.length).toBeGreaterThan(5)
  })

  it('gives up the comparison after a minute, also without a deadline', async () => {
    const clock = manualClock()
    let puts = 0
    let comparing = false
    const hanging: typeof fetch = (_input, init) => {
      if (init?.method === 'PUT') {
        puts += 1
        return Promise.reject(Object.assign(new Error('lost'), { code: 'ECONNRESET' }))
      }
      const answer = new Response('{"balance":100}', { headers: { etag: '"v1"' } })
      if (puts === 0) return Promise.resolve(answer)
      comparing = true
      return new Promise((_resolve, reject) =>
        init?.signal?.addEventListener('abort', () => reject(init.signal?.reason)),
      )
    }
    const slow = httpClient({ fetch: hanging, policy: { clock, backoff: constantDelay(0) } })
    let error: unknown
    const update = slow.conditionalUpdate('http://127.0.0.1/', marked).catch((reason: unknown) => {
      error = reason
    })
    while (!comparing) {
      await clock.advance(1)
      await new Promise(setImmediate)
    }
    await clock.advance(59_000)
    expect(error).toBeUndefined()
    await clock.advance(2_000)
    await update
    expect(error).toBeInstanceOf(UnknownOutcomeError)
    expect(puts).toBe(3)
    expect(clock.pendingTimers).toBe(0)
  })

  it('refuses to change what has no body', async () => {
    const empty: typeof fetch = async () => new Response(null, { status: 204, headers: { etag: '"v1"' } })
    const asked = client({ fetch: empty }).conditionalUpdate('http://127.0.0.1/', { change: deposit })
    await expect(asked).rejects.toMatchObject({ code: 'HTTP_STATUS', details: { status: 204 } })
  })

  it('leaves what need not be changed', async () => {
    const { url, requests } = await account([])
    const update = await client().conditionalUpdate<Account>(url, { change: () => undefined })
    expect(update).toEqual({ changed: false, value: { balance: 100 }, rounds: 1 })
    expect(requests).toHaveLength(1)
  })

  it('decides anew when somebody else came first', async () => {
    const world = await account([])
    let decided = 0
    const change = (current: Account) => {
      if (++decided === 1) world.interfere({ balance: 500 })
      return deposit(current)
    }
    expect(await client().conditionalUpdate(world.url, { change })).toEqual({
      changed: true,
      value: { balance: 510 },
      rounds: 2,
    })
    expect(world.effects).toHaveLength(1)
  })

  it('gives up after its rounds', async () => {
    const world = await account([])
    const change = (current: Account) => {
      world.interfere({ balance: current.balance + 1 })
      return deposit(current)
    }
    await expect(client().conditionalUpdate(world.url, { change, rounds: 3 })).rejects.toMatchObject({
      code: 'UPDATE_CONFLICT',
      details: { rounds: 3 },
    })
    expect(world.effects).toHaveLength(0)
  })

  it('spends of the allowance of the layers around it, and gives up when nothing is left', async () => {
    const world = await account([])
    const change = (current: Account) => {
      world.interfere({ balance: current.balance + 1 })
      return deposit(current)
    }
    const allowance = { attempts: 3, spent: 3 }
    const scope = openScopes([layerScope({ depth: 1, declared: 3, owns: false, allowance })])
    const update = scope.call(() => client().conditionalUpdate(world.url, { change, rounds: 5 }))
    await expect(update).rejects.toMatchObject({ code: 'UPDATE_CONFLICT', details: { rounds: 2 } })
    scope.end()
    expect(allowance).toEqual({ attempts: 5, spent: 4 })
  })

  it('after a lost answer, a 412 is found to be its own success: the deposit is made once', async () => {
    const { url, effects, state, requests } = await account(['lost-answer'])
    let decided = 0
    const change = (current: Account) => {
      decided++
      return marked.change(current)
    }
    const update = await client().conditionalUpdate(url, { ...marked, change })
    expect(update).toMatchObject({ changed: true, value: { balance: 110 } })
    expect(decided).toBe(1)
    expect(effects).toHaveLength(1)
    expect(state()).toMatchObject({ balance: 110 })
    expect(requests.map(({ method }) => method)).toEqual(['GET', 'PUT', 'PUT', 'GET'])
  })

  it.each([
    ['without a write token nobody can tell', undefined, 0],
    ['a write token tells that it was not ours, and the change is decided anew', marked.isOurs, 1],
  ])('a stranger’s equal value after a lost request is not taken for our write: %s', async (_name, isOurs, ours) => {
    const world = await account(['lost-request'])
    let puts = 0
    const meddling: typeof fetch = (input, init) => {
      // Somebody else makes the same change before our repeat arrives.
      if (init?.method === 'PUT' && ++puts === 2) world.interfere({ balance: 110 })
      return fetch(input, init)
    }
    const { change } = isOurs === undefined ? { change: deposit } : marked
    const asked = client({ fetch: meddling }).conditionalUpdate(world.url, { change, ...(isOurs && { isOurs }) })
    if (isOurs === undefined) {
      await expect(asked).rejects.toBeInstanceOf(UnknownOutcomeError)
      // Nothing is read that could tell nothing.
      expect(world.requests.map(({ method }) => method)).toEqual(['GET', 'PUT', 'PUT'])
    } else {
      expect(await asked).toEqual({ changed: true, value: { balance: 120, token: 'ours-1' }, rounds: 2 })
    }
    expect(world.effects).toHaveLength(ours)
  })

  it('does not decide anew while its own write may still arrive: the tag is the old one', async () => {
    const world = await account(['lost-request', 'lost-request', 'lost-request'])
    await expect(client().conditionalUpdate(world.url, marked)).rejects.toBeInstanceOf(UnknownOutcomeError)
    expect(world.requests.map(({ method }) => method)).toEqual(['GET', 'PUT', 'PUT', 'PUT', 'GET'])
  })

  it('a write that is answered 303 is made once, and not taken for somebody else’s', async () => {
    let [state, version, writes] = ['{"balance":100}', 1, 0]
    // As strict with the read that follows as with the write.
    const step: Step = {
      request: (socket, { method, headers, body }) => {
        const answer = (head: string, text = '') =>
          socket.end(
            `HTTP/1.1 ${head}\r\nconnection: close\r\ncontent-length: ${text.length}\r\netag: "v${version}"\r\n\r\n${text}`,
          )
        if (headers['if-match'] !== undefined && headers['if-match'] !== `"v${version}"`) return void answer('412 No')
        if (method === 'GET') return void answer('200 Fine', state)
        state = body
        version++
        writes++
        answer('303 See\r\nlocation: /account')
      },
    }
    const server = await misbehavingServer(step)
    open.push(server)
    const update = await client().conditionalUpdate(`${server.origin}/account`, { change: deposit })
    expect(update).toEqual({ changed: true, value: { balance: 110 }, rounds: 1 })
    expect([state, writes]).toEqual(['{"balance":110}', 1])
  })

  it('after a lost request, the repeat is the first success', async () => {
    const { url, effects, state } = await account(['lost-request'])
    await client().conditionalUpdate(url, { change: deposit })
    expect(effects).toHaveLength(1)
    expect(state()).toEqual({ balance: 110 })
  })

  it('after a lost answer and somebody else’s change on top, nobody can tell', async () => {
    const { url, effects, state } = await account(['lost-answer'], [{ balance: 7 }])
    await expect(client().conditionalUpdate(url, { change: deposit })).rejects.toBeInstanceOf(UnknownOutcomeError)
    expect(effects).toHaveLength(1)
    expect(state()).toEqual({ balance: 7 })
  })

  it('after a lost request and somebody else’s change, nobody can tell either, unless a write token does', async () => {
    const blind = await account(['lost-request'], [])
    const change = (current: Account) => ({ ...deposit(current), by: 'us' })
    let attempts = 0
    const meddling: typeof fetch = (input, init) => {
      if (init?.method === 'PUT' && ++attempts === 2) blind.interfere({ balance: 1, by: 'them' })
      return fetch(input, init)
    }
    await expect(client({ fetch: meddling }).conditionalUpdate(blind.url, { change })).rejects.toBeInstanceOf(
      UnknownOutcomeError,
    )
    expect(blind.effects).toHaveLength(0)

    const told = await account(['lost-request'], [])
    attempts = 0
    const again: typeof fetch = (input, init) => {
      if (init?.method === 'PUT' && ++attempts === 2) told.interfere({ balance: 1, by: 'them' })
      return fetch(input, init)
    }
    const isOurs = (current: Account) => current.by === 'us'
    const update = await client({ fetch: again }).conditionalUpdate<Account>(told.url, { change, isOurs })
    expect(update).toEqual({ changed: true, value: { balance: 11, by: 'us' }, rounds: 2 })
    expect(told.effects).toHaveLength(1)
  })

  it('when the attempts run out it looks, and finds its own success, or says that nobody knows', async () => {
    const lost = await account(['lost-answer'])
    const down: typeof fetch = async (input, init) => {
      if (init?.method !== 'PUT' || lost.effects.length === 0) return fetch(input, init)
      return new Response(null, { status: 502 })
    }
    expect(await client({ fetch: down }).conditionalUpdate(lost.url, marked)).toMatchObject({ changed: true })
    expect(lost.effects).toHaveLength(1)

    const gone = await account(['lost-request', 'lost-request', 'lost-request'])
    const error = await client()
      .conditionalUpdate(gone.url, { change: deposit })
      .catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(UnknownOutcomeError)
    expect((error as UnknownOutcomeError).attempts).toHaveLength(3)
    expect(gone.effects).toHaveLength(0)
  })

  it('a comparison may end a call with the Response of another fetch, which is of another class', async () => {
    const { url, interfere } = await account(['lost-answer'])
    const found = { status: 200, ok: true, body: null, bodyUsed: false }
    const compare = () => {
      interfere({ balance: 0 })
      return { ours: true as const, value: found as unknown as Response }
    }
    const init = { method: 'PUT', body: '{}', headers: { 'if-match': '"v1"' }, compare }
    expect(await client().fetch(url, init)).toBe(found)
  })

  it('has one deadline for all its requests', async () => {
    const { url, requests } = await account(Array.from({ length: 9 }, () => 'none' as const))
    const slow = async ({ balance }: Account) => {
      await new Promise((resolve) => setTimeout(resolve, 1_700))
      return { balance: balance + 10 }
    }
    const asked = client().conditionalUpdate<Account>(url, { change: slow, init: { deadline: 1_500 } })
    await expect(asked).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(requests.map(({ method }) => method)).toEqual(['GET'])
  })

  it('has a key of its own for the contents of each round, and the same one for their repeats', async () => {
    const world = await account(['lost-request'])
    let decided = 0
    const change = (current: Account) => {
      if (++decided === 1) world.interfere({ balance: 500 })
      return deposit(current)
    }
    const isOurs = () => false
    await client().conditionalUpdate(world.url, { change, isOurs })
    const puts = world.requests.filter(({ method }) => method === 'PUT')
    const keys = puts.map(({ headers }) => headers['idempotency-key'])
    expect(puts.map(({ body }) => body)).toEqual(['{"balance":110}', '{"balance":110}', '{"balance":510}'])
    expect(keys[0]).toMatch(/^".+"$/)
    expect([keys[1] === keys[0], keys[2] === keys[0]]).toEqual([true, false])
  })

  it.each([
    ['headers.idempotency-key', { headers: { 'Idempotency-Key': '"order-4711"' } }],
    ['headers.idempotency-key', { headers: [['idempotency-key', '"order-4711"']] }],
    ['key', { key: 'order-4711' }],
    ['step', { step: 'order-4711' }],
    ['method', { method: 'order-4711' }],
  ])('refuses init.%s before anything is sent', async (name, init) => {
    const { url, requests } = await account([])
    const asked = client().conditionalUpdate(url, { change: deposit, init: init as never })
    const error = await asked.catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'ARGUMENT_INVALID', details: { path: `init.${name}` } })
    expect((error as Error).message).not.toContain('4711')
    expect(requests).toHaveLength(0)
  })

  it.each([
    ['a function', () => 'secret'],
    ['a symbol', Symbol('secret')],
    ['what its toJSON leaves undefined', { toJSON: () => undefined }],
  ])('refuses to write %s, which has no JSON', async (_name, intended) => {
    const { url, requests, state } = await account([])
    const asked = client().conditionalUpdate<unknown>(url, { change: () => intended })
    await expect(asked).rejects.toMatchObject({ code: 'JSON_VALUE_UNSUPPORTED' })
    expect(requests.map(({ method }) => method)).toEqual(['GET'])
    expect(state()).toEqual({ balance: 100 })
  })

  it.each(['W/"v1"', undefined])('refuses to write under the tag %s', async (tag) => {
    const { url, requests } = await account([], [], () => tag ?? '')
    const asked = client().conditionalUpdate(url, { change: deposit })
    await expect(asked).rejects.toMatchObject({ code: 'ETAG_MISSING' })
    expect(requests).toHaveLength(1)
  })

  it('says which status ended it', async () => {
    const { url } = await account([])
    const forbidding: typeof fetch = async (input, init) =>
      init?.method === 'PUT' ? new Response('no', { status: 403 }) : fetch(input, init)
    await expect(client({ fetch: forbidding }).conditionalUpdate(url, { change: deposit })).rejects.toMatchObject({
      code: 'HTTP_STATUS',
      details: { status: 403 },
    })
    await expect(client().conditionalUpdate(url, { change: deposit, rounds: 0 })).rejects.toMatchObject({
      code: 'ARGUMENT_INVALID',
    })
  })
})
