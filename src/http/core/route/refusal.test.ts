import { expect, it } from 'vitest'
import { routeWorld, send } from '../../../../test/http/route-world.js'
import { mintKey } from '../../../identity/index.js'
import { reply } from '../answer/answer.js'
import type { Problem } from '../problems.js'
import { invalid } from '../request/http-request.js'
import type { RefusalCause } from './causes.js'

const inError = ({ name, status, detail, retryable }: Problem) =>
  reply(status, { error: { code: name, message: detail, retryable } }, { 'x-shape': 'own' })

it('shapes every refusal: of the layer, of parse and of the handler, and keeps what else it says', async () => {
  const { route } = routeWorld()
  const refused: Problem[] = []
  const charges = route(
    {
      problems: 'https://docs.example/',
      refusal: (problem) => {
        refused.push(problem)
        return inError(problem)
      },
      parse: (request) => {
        if (request.json() === 'parse') throw invalid(400, 'Not this.')
      },
    },
    async ({ request }) => {
      if (request.json() === 'handler') throw invalid(422, 'Nor this.')
      return reply(201)
    },
  )
  const errorOf = (text: string) => (JSON.parse(text) as { error: unknown }).error
  const missing = await send(charges, { key: undefined })
  expect([missing.status, missing.headers['content-type'], missing.headers['cache-control']]).toEqual([
    400,
    'application/json; charset=utf-8',
    'no-store',
  ])
  expect(errorOf(missing.text)).toMatchObject({ code: 'key-missing', retryable: false })
  const parsed = await send(charges, { body: '"parse"' })
  expect([parsed.status, errorOf(parsed.text)]).toEqual([
    400,
    { code: 'request-invalid', message: 'Not this.', retryable: false },
  ])
  const handled = await send(charges, { body: '"handler"' })
  expect([handled.status, errorOf(handled.text)]).toMatchObject([422, { message: 'Nor this.' }])
  const late = await send(charges, { headers: { 'reprise-deadline-ms': '10' } })
  expect([late.status, late.headers['retry-after'], late.headers['x-shape']]).toEqual([503, '1', 'own'])
  const key = mintKey()
  await send(charges, { key, body: '1' })
  expect(errorOf((await send(charges, { key, body: '2' })).text)).toMatchObject({ code: 'key-reused' })
  expect(refused.map(({ name, type }) => [name, type])).toEqual(
    ['key-missing', 'request-invalid', 'request-invalid', 'deadline-exceeded', 'key-reused'].map((name) => [
      name,
      `https://docs.example/${name}`,
    ]),
  )
})

it.each([
  ['throws', () => JSON.parse('{')],
  ['gives a success', () => reply(200, { fine: true })],
  ['gives nothing', () => undefined],
  ['gives a promise', async () => reply(409)],
  ['gives what cannot be sent', () => reply(409, 'x', { 'x-a': 'a\nb' })],
])('answers with the problem where refusal %s, and tells that', async (_what, refusal) => {
  const { route } = routeWorld()
  const causes: RefusalCause[] = []
  const charges = route({ refusal: refusal as never, log: (cause) => void causes.push(cause) })
  expect(await send(charges, { key: undefined })).toMatchObject({ status: 400, problem: 'key-missing' })
  expect(causes).toMatchObject([{ route: 'charges', problem: 'key-missing' }])
})

it('takes a Response', async () => {
  const { route } = routeWorld()
  const charges = route({ refusal: ({ status }) => Response.json({ error: 'no' }, { status }) })
  expect(await send(charges, { key: undefined })).toMatchObject({ status: 400, text: '{"error":"no"}' })
})
