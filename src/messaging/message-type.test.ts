import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { memory } from '../stores/memory/index.js'
import { consume } from './consumer/consumer.js'
import { deadLetters } from './dead-letters/dead-letters.js'
import type { Message } from './index.js'
import { type MessageType, messageType, schemasOf } from './message-type.js'

interface Total {
  readonly total: string
}

const byZod = messageType('order.placed', z.object({ total: z.string().transform(Number) }))
const byValibot = messageType('order.placed', v.object({ total: v.pipe(v.string(), v.transform(Number)) }))
const byArkType = messageType('order.placed', type({ total: type('string').pipe((text) => Number(text)) }))

it('knows what is emitted and what is handled by its schema, of Zod, Valibot and ArkType', () => {
  expectTypeOf(byZod).toExtend<MessageType<'order.placed', { total: string }, { total: number }>>()
  for (const placed of [byZod, byValibot, byArkType] as const) {
    expectTypeOf(placed.draft).parameter(0).toHaveProperty('data').toEqualTypeOf<{ total: string }>()
    const message = { type: 'order.placed', data: { total: 7 } } as Message<unknown>
    if (!placed.is(message)) return expect.unreachable()
    expectTypeOf(message.data).toEqualTypeOf<{ total: number }>()
    expectTypeOf(message.type).toEqualTypeOf<'order.placed'>()
  }
  // @ts-expect-error: the total is a text where it is emitted.
  byZod.draft({ data: { total: 7 } })
  expect(byZod.is({ type: 'order.sent' } as Message<unknown>)).toBe(false)
})

describe.each([
  ['Zod', byZod],
  ['Valibot', byValibot],
  ['ArkType', byArkType],
] as const)('a type by %s', (_library, placed) => {
  it('is checked on emit, and gives the handler what the schema makes of it', async () => {
    const schemas = schemasOf(placed as MessageType)
    const db = memory({ name: 'shop', messages: { schemas } })
    const seen: number[] = []
    const totals = consume(db, {
      name: 'totals',
      from: db,
      schemas,
      handle: (_tx, message) => {
        if (placed.is(message)) seen.push(message.data.total)
      },
    })
    await db.transact((tx) => tx.emit(placed.draft({ subject: 'order/1', data: { total: '7' } })))
    const unsound = placed.draft({ data: { total: 7 } as unknown as Total })
    await expect(db.transact((tx) => tx.emit(unsound))).rejects.toMatchObject({ code: 'MESSAGE_INVALID' })
    await totals.drain()
    expect(seen).toEqual([7])
    await db.close()
  })

  it('is a dead letter in the consumer, where whoever emitted it did not check', async () => {
    const db = memory({ name: 'shop' })
    const seen: unknown[] = []
    const schemas = schemasOf(placed as MessageType)
    const totals = consume(db, { name: 'totals', from: db, schemas, handle: (_tx, { data }) => seen.push(data) })
    await db.transact((tx) => tx.emit(placed.draft({ data: { total: 7 } as unknown as Total })))
    await totals.drain()
    expect(seen).toEqual([])
    const letters = await deadLetters(db).list()
    expect(letters).toMatchObject([{ code: 'MESSAGE_INVALID' }])
    await db.close()
  })
})

it('refuses what is no type, no schema, and two types of one name', () => {
  const code = 'MESSAGE_INVALID'
  expect(() => messageType('', z.string())).toThrow(expect.objectContaining({ code, details: { field: 'type' } }))
  expect(() => messageType('x', {} as never)).toThrow(expect.objectContaining({ code, details: { field: 'schema' } }))
  const one = messageType('x', z.string()) as MessageType
  expect(() => schemasOf(one, one)).toThrow(expect.objectContaining({ code, details: { field: 'type' } }))
})
