// From a producer to a store, over HTTP: answers are dropped, requests arrive twice and late, a process is replaced; each
// intent has one effect, in order, and the zombie is refused.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { httpClient } from '../../../src/http/client/index.js'
import { AnswerError, idempotent, reply } from '../../../src/http/node/index.js'
import { acceptedHeader, sequenceHeader } from '../../../src/identity/index.js'
import { constantDelay, type Producer, producer, repeatable, sequenced } from '../../../src/retry/index.js'
import { engines, type Handle, type LedgerWorld } from '../operations/worlds.js'

/** A service that places orders under numbers, and drops answers when it is told to. */
async function service(world: LedgerWorld, path: string) {
  const orders = world.db.sequence(path)
  const ledger: string[] = []
  const fields: IncomingMessage['headersDistinct'][] = []
  let drops = 0
  const options = { principal: () => 'shop', required: false } as const
  const place = idempotent<Handle>(world.db, { ...options, name: `place-${path}` }, async ({ tx, request }) => {
    const at = sequenceHeader.read(request.fields(sequenceHeader.name))
    const content = { json: request.text() }
    const { item } = request.json() as { item: string }
    if (item === 'nothing') return reply(422)
    const accepted = await orders.accept(tx, { ...at, content }, async () => {
      await world.effect(tx, `${path}/${item}`)
      return { order: `${item} by ${at.producer}` }
    })
    tx.afterCommit(() => {
      if (accepted.result === 'new') ledger.push(item)
    })
    const settled = { [acceptedHeader.name]: acceptedHeader.write(at) }
    if (item === 'sold out') return reply(422, { ...accepted.value }, settled)
    // Rolled back, and with it the number, whatever the handler says of it.
    if (item === 'changed') return reply(412, undefined, settled)
    if (item === 'forbidden') throw new AnswerError(reply(403, undefined, settled))
    if (item === 'unknown') throw new AnswerError(reply(404, undefined, settled))
    return reply(accepted.result === 'new' ? 201 : 200, { ...accepted.value })
  })
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    if (request.url === '/epochs') {
      orders.open('till').then(
        (epoch) => response.end(String(epoch)),
        () => response.writeHead(500).end(),
      )
      return
    }
    fields.push(request.headersDistinct)
    if (drops > 0) {
      drops -= 1
      // The transaction has ended when the answer is to leave, and the client hears nothing.
      response.writeHead = () => response
      response.end = () => response.destroy()
    }
    void place(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  afterAll(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    ledger,
    fields,
    drop: (count: number) => {
      drops = count
    },
  }
}

describe.each(engines)('a producer and a service on %s', (_, open) => {
  let world: LedgerWorld
  beforeAll(async () => {
    world = await open()
  })

  const http = httpClient({ policy: { backoff: constantDelay(1), attempts: 4 }, budget: false })
  const begin = async (url: string): Promise<Producer> => {
    // An epoch whose answer was lost is fenced by the next, so this can be repeated.
    const guard = repeatable('opens the next epoch')
    const answer = await http.fetch(`${url}epochs`, { method: 'POST', guard })
    return producer({ name: 'till', epoch: Number(await answer.text()) })
  }
  const send = (url: string, till: Producer, item: string, guard = sequenced(till)) =>
    http.fetch(url, { method: 'POST', body: JSON.stringify({ item }), guard })

  it('have one effect for each intent, in order, whatever answers are lost', async () => {
    const shop = await service(world, 'orders')
    const till = await begin(shop.url)
    const statuses: number[] = []
    for (const [item, lost] of [
      ['tea', 0],
      ['coffee', 1],
      ['milk', 2],
      ['bread', 0],
    ] as const) {
      shop.drop(lost)
      const answer = await send(shop.url, till, item)
      statuses.push(answer.status)
      expect(await answer.json()).toEqual({ order: `${item} by till` })
    }
    // Those whose first answer was lost are told what was stored.
    expect(statuses).toEqual([201, 200, 200, 201])
    expect(shop.ledger).toEqual(['tea', 'coffee', 'milk', 'bread'])
    expect([till.last, till.unsettled]).toEqual([4, undefined])
    // One number an intent, the same in every attempt, and no key beside it.
    const numbers = shop.fields.map((one) => sequenceHeader.read(one['reprise-sequence']).number)
    expect(numbers).toEqual([1, 2, 2, 3, 3, 3, 4])
    expect(shop.fields.every((one) => one['idempotency-key'] === undefined)).toBe(true)
    // A copy of an old request that arrives late is a duplicate; of the last one too, with its result.
    for (const [number, item] of [
      [1, 'tea'],
      [4, 'bread'],
    ] as const) {
      const headers = { [sequenceHeader.name]: sequenceHeader.write({ producer: 'till', epoch: till.epoch, number }) }
      const late = await fetch(shop.url, { method: 'POST', headers, body: JSON.stringify({ item }) })
      expect([late.status, await late.json()]).toEqual([200, number === 4 ? { order: 'bread by till' } : {}])
    }
    expect(shop.ledger).toHaveLength(4)
    expect(Object.entries(await world.ledger()).filter(([intent]) => intent.startsWith('orders/'))).toEqual(
      ['bread', 'coffee', 'milk', 'tea'].map((item) => [`orders/${item}`, 1]),
    )
  })

  it('do not go on past a number whose outcome is unknown, and settle it by a repeat', async () => {
    const shop = await service(world, 'unknown')
    const till = await begin(shop.url)
    shop.drop(4)
    const guard = sequenced(till)
    await expect(send(shop.url, till, 'tea', guard)).rejects.toThrow()
    expect([till.last, till.unsettled, shop.ledger]).toEqual([0, 1, ['tea']])
    await expect(send(shop.url, till, 'coffee')).rejects.toMatchObject({ code: 'SEQUENCE_UNSETTLED' })
    expect((await send(shop.url, till, 'tea', guard)).status).toBe(200)
    expect((await send(shop.url, till, 'coffee')).status).toBe(201)
    expect(shop.ledger).toEqual(['tea', 'coffee'])
  })

  it('give a number that was refused to the next intent', async () => {
    const shop = await service(world, 'refused')
    const till = await begin(shop.url)
    expect((await send(shop.url, till, 'nothing')).status).toBe(422)
    expect((await send(shop.url, till, 'tea')).status).toBe(201)
    expect([till.last, shop.ledger]).toEqual([1, ['tea']])
  })

  it('give the next number to the next intent after a refusal that is accepted, also where its answer was lost', async () => {
    const shop = await service(world, 'accepted')
    const till = await begin(shop.url)
    const guard = sequenced(till)
    const refused = await send(shop.url, till, 'sold out', guard)
    expect([refused.status, await refused.json()]).toEqual([422, { order: 'sold out by till' }])
    expect([till.last, till.unsettled, shop.ledger]).toEqual([1, undefined, ['sold out']])
    expect((await send(shop.url, till, 'sold out', guard)).status).toBe(422)
    expect((await send(shop.url, till, 'tea')).status).toBe(201)
    shop.drop(1)
    expect((await send(shop.url, till, 'sold out')).status).toBe(422)
    expect((await send(shop.url, till, 'coffee')).status).toBe(201)
    expect([till.last, shop.ledger]).toEqual([4, ['sold out', 'tea', 'sold out', 'coffee']])
  })

  it('use no number up where the answer is of what was rolled back', async () => {
    const shop = await service(world, 'rolled-back')
    const till = await begin(shop.url)
    for (const [item, status] of [
      ['changed', 412],
      ['forbidden', 403],
      ['unknown', 404],
    ] as const) {
      const answer = await send(shop.url, till, item)
      expect([answer.status, answer.headers.get(acceptedHeader.name)]).toEqual([status, null])
      // Under a key the thrown one is stored, without what it says of the number.
      const at = sequenceHeader.write({ producer: 'till', epoch: till.epoch, number: 1 })
      const headers = { [sequenceHeader.name]: at, 'idempotency-key': `"${item}"` }
      const keyed = await fetch(shop.url, { method: 'POST', headers, body: JSON.stringify({ item }) })
      expect([keyed.status, keyed.headers.get(acceptedHeader.name)]).toEqual([status, null])
    }
    expect((await send(shop.url, till, 'tea')).status).toBe(201)
    expect([till.last, shop.ledger]).toEqual([1, ['tea']])
  })

  it('say in a replay, too, that the number is used', async () => {
    const shop = await service(world, 'replayed')
    const till = await begin(shop.url)
    const at = { producer: 'till', epoch: till.epoch, number: 1 }
    const headers = { [sequenceHeader.name]: sequenceHeader.write(at), 'idempotency-key': '"one"' }
    for (const replayed of [null, 'true']) {
      const answer = await fetch(shop.url, { method: 'POST', headers, body: '{"item":"sold out"}' })
      expect([answer.status, answer.headers.get('idempotent-replayed')]).toEqual([422, replayed])
      expect(acceptedHeader.read(answer.headers.get(acceptedHeader.name))).toEqual(at)
    }
  })

  it('refuse a zombie, a gap, other content and a malformed number, and carry out nothing of it', async () => {
    const shop = await service(world, 'zombies')
    const zombie = await begin(shop.url)
    await send(shop.url, zombie, 'tea')
    const till = await begin(shop.url)
    const refused = await send(shop.url, zombie, 'zombie')
    expect([refused.status, await refused.json()]).toMatchObject([
      409,
      { type: 'urn:reprise:problem:sequence-fenced', retryable: false },
    ])
    await send(shop.url, till, 'coffee')
    const post = async (field: string | undefined, item: string) => {
      const headers = field === undefined ? {} : { [sequenceHeader.name]: field }
      const answer = await fetch(shop.url, { method: 'POST', headers, body: JSON.stringify({ item }) })
      return [answer.status, ((await answer.json()) as { type: string }).type.replace(/.*:/, '')]
    }
    const at = (epoch: number, number: number) => sequenceHeader.write({ producer: 'till', epoch, number })
    expect(await post(at(till.epoch, 3), 'x')).toEqual([409, 'sequence-gap'])
    expect(await post(at(till.epoch, 1), 'x')).toEqual([422, 'sequence-reused'])
    expect(await post(at(zombie.epoch, 1), 'tea')).toEqual([409, 'sequence-fenced'])
    expect(await post('"till";epoch=1', 'x')).toEqual([400, 'sequence-invalid'])
    expect(await post(undefined, 'x')).toEqual([400, 'sequence-missing'])
    expect(shop.ledger).toEqual(['tea', 'coffee'])
  })
})
