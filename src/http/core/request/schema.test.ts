import { type } from 'arktype'
import * as valibot from 'valibot'
import { expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { routeWorld, send } from '../../../../test/http/route-world.js'
import { mintKey } from '../../../identity/index.js'
import type { StandardSchema } from '../../../kernel/index.js'
import { memory } from '../../../stores/memory/index.js'
import { reply } from '../answer/answer.js'
import { atomicRoute } from '../route/atomic.js'

interface Charge {
  readonly amount: number
  readonly items: readonly { readonly name: string }[]
}

const schemas: readonly (readonly [string, StandardSchema<Charge>])[] = [
  ['Zod', z.object({ amount: z.number(), items: z.array(z.object({ name: z.string() })) })],
  [
    'Valibot',
    valibot.object({ amount: valibot.number(), items: valibot.array(valibot.object({ name: valibot.string() })) }),
  ],
  ['ArkType', type({ amount: 'number', items: type({ name: 'string' }).array() })],
]

const sound = { amount: 7, items: [{ name: 'tea' }] }

it.each(schemas)('takes a schema of %s for parse: what fits is the input', async (_, parse) => {
  const { route } = routeWorld()
  const charges = route({ parse }, async ({ input }) => reply(201, input))
  const charged = await send(charges, { body: JSON.stringify(sound) })
  expect([charged.status, JSON.parse(charged.text)]).toEqual([201, sound])
})

it.each(schemas)('answers what a schema of %s finds wrong, place by place, and stores nothing', async (_, parse) => {
  const { route, effects } = routeWorld()
  const charges = route({ parse })
  const key = mintKey()
  const refused = await send(charges, { key, body: JSON.stringify({ amount: 'much', items: [{ name: 4711 }] }) })
  expect([refused.status, refused.problem]).toEqual([400, 'request-invalid'])
  const { errors } = JSON.parse(refused.text) as { errors: { detail: string; pointer: string }[] }
  expect(errors.map(({ pointer }) => pointer).sort()).toEqual(['#/amount', '#/items/0/name'])
  for (const { detail } of errors) expect(detail).not.toBe('')
  expect(effects()).toBe(0)
  // The key is still free.
  const charged = await send(charges, { key, body: JSON.stringify(sound) })
  expect(charged.status).toBe(201)
})

it('gives the input as the schema changed it, in each run of the handler', async () => {
  const { route } = routeWorld()
  const parse = z.object({ amount: z.string().transform(Number), note: z.string().default('none') })
  const charges = route({ parse }, async ({ input }) => reply(201, input))
  const charged = await send(charges, { body: '{"amount":"7","more":1}' })
  expect(JSON.parse(charged.text)).toEqual({ amount: 7, note: 'none' })
})

it('refuses a body that is no JSON as ever, and one that is wrong as a whole at #', async () => {
  const { route } = routeWorld()
  const charges = route({ parse: z.object({ amount: z.number() }) })
  const odd = await send(charges, { body: '{' })
  expect([odd.status, JSON.parse(odd.text)]).toMatchObject([400, { detail: 'The body is not JSON.' }])
  const whole = await send(charges, { body: '[]' })
  expect(JSON.parse(whole.text)).toMatchObject({ errors: [{ pointer: '#' }] })
})

it('tells at most twenty errors, each cut', async () => {
  const { route } = routeWorld()
  const parse: StandardSchema<unknown> = {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: async () => ({
        issues: Array.from({ length: 30 }, (_, at) => ({ message: 'x'.repeat(600), path: [{ key: 'a/b c' }, at] })),
      }),
    },
  }
  const refused = await send(route({ parse }))
  const { errors } = JSON.parse(refused.text) as { errors: { detail: string; pointer: string }[] }
  expect([errors.length, errors[0]?.detail.length, errors[1]?.pointer]).toEqual([20, 500, '#/a~1b%20c/1'])
})

it('hands on what a schema throws, as what parse throws', async () => {
  const { route } = routeWorld()
  const error = new Error('broken')
  const parse = z.unknown().transform(() => {
    throw error
  })
  await expect(send(route({ parse }))).rejects.toBe(error)
})

it('infers the input', () => {
  const db = memory({ name: 'shop' })
  const usual = { name: 'charges', principal: () => 'ann' }
  atomicRoute(db, { ...usual, parse: z.object({ amount: z.coerce.number() }) }, async ({ input }) => {
    expectTypeOf(input).toEqualTypeOf<{ amount: number }>()
    return reply(200)
  })
  atomicRoute(db, { ...usual, name: 'b', parse: type({ amount: 'number' }) }, async ({ input }) => {
    expectTypeOf(input).toEqualTypeOf<{ amount: number }>()
    return reply(200)
  })
  const parse = valibot.object({ amount: valibot.number() })
  atomicRoute(db, { ...usual, name: 'c', parse }, async ({ input }) => {
    expectTypeOf(input).toEqualTypeOf<{ amount: number }>()
    return reply(200)
  })
})
