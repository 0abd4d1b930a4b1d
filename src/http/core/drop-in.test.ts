import { expect, it } from 'vitest'
import { factsOf, read } from '../../../test/http/route-world.js'
import { type MemoryTransaction, memory } from '../../stores/memory/index.js'
import { reply } from './answer/answer.js'
import { dropInRoute } from './drop-in.js'

const options = { name: 'charges', principal: () => 'ann' }
const sent = factsOf({ key: 'k-1', type: 'application/json', body: '{}' })

it('runs a handler once for a request, whatever its transaction says', async () => {
  let runs = 0
  const route = dropInRoute(memory({ name: 'shop' }), { ...options, required: false }, async () => {
    runs += 1
    return reply(502)
  })
  const native = {}
  expect((await read(await route.handle(sent, native))).status).toBe(502)
  await expect(route.handle(sent, native)).rejects.toMatchObject({ code: 'TRANSACTION_OVER' })
  expect(runs).toBe(1)
})

it('refuses a stream of events, and ends what makes it', async () => {
  const ended: string[] = []
  async function* events(): AsyncGenerator<string> {
    try {
      yield 'data: 1\n\n'
      yield 'data: 2\n\n'
    } finally {
      ended.push('ended')
    }
  }
  const route = dropInRoute(memory({ name: 'shop' }), options, async () => {
    const stream = events()
    await stream.next()
    return reply(200, stream, { 'content-type': 'text/event-stream' })
  })
  await expect(route.handle(sent, {})).rejects.toMatchObject({ code: 'ANSWER_NOT_HELD' })
  expect(ended).toEqual(['ended'])
})

// Each part is a row of its own, written while the answer is made.
async function* written(tx: MemoryTransaction, parts: number, ended: () => void): AsyncGenerator<Uint8Array> {
  try {
    for (let part = 1; part <= parts; part += 1) {
      await tx.insertOnce('part', { id: part }, ['id'])
      yield new Uint8Array(1_048_576)
    }
  } finally {
    ended()
  }
}

it('makes all of a streamed answer before COMMIT, and rolls back one that is too large to be held', async () => {
  const db = memory({ name: 'shop' })
  db.table('part', { unique: [['id']] })
  let parts = 18
  let ended = 0
  const route = dropInRoute(db, options, async ({ tx }) =>
    reply(
      200,
      written(tx, parts, () => {
        ended += 1
      }),
    ),
  )
  await expect(route.handle(sent, {})).rejects.toMatchObject({ code: 'ANSWER_NOT_HELD' })
  expect([db.rows('part').length, ended]).toEqual([0, 1])
  parts = 3
  const whole = await read(await route.handle(sent, {}))
  expect([whole.status, whole.bytes.length, db.rows('part').length]).toEqual([200, 3_145_728, 3])
})
