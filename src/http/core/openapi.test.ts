import { expect, it } from 'vitest'
import { routeWorld, send } from '../../../test/http/route-world.js'
import { mintKey } from '../../identity/index.js'
import { reply } from './answer/answer.js'
import { type OpenApiOptions, openApiFragment } from './openapi.js'
import { type Problem, problemKinds } from './problems.js'

type Node = Readonly<Record<string, unknown>>

/** What is wrong with a fragment, by the rules of OpenAPI that a merge could not repair. */
function faultsOf(options: OpenApiOptions): string[] {
  const { components, operation } = openApiFragment(options)
  const faults: string[] = []
  const visit = (node: unknown, path: string): void => {
    if (typeof node !== 'object' || node === null) return
    for (const [name, inner] of Object.entries(node)) {
      if (name === '$ref') {
        const at = String(inner).replace('#/components/', '').split('/')
        if (at.reduce<unknown>((part, step) => (part as Node | undefined)?.[step], components) === undefined)
          faults.push(`${path}: ${inner}`)
        if (Object.keys(node).length > 1) faults.push(`${path}: more than a reference`)
      }
      visit(inner, `${path}/${name}`)
    }
  }
  visit({ components, operation }, '')
  for (const names of Object.values(components)) {
    for (const name of Object.keys(names)) if (!/^[\w.-]+$/.test(name)) faults.push(`component ${name}`)
  }
  for (const [status] of Object.entries(operation.responses))
    if (!/^(?:202|[45]\d\d)$/.test(status)) faults.push(`status ${status}`)
  for (const [name, response] of Object.entries(components.responses) as [string, Node][]) {
    if (typeof response['description'] !== 'string' || response['description'] === '')
      faults.push(`${name}: no description`)
  }
  for (const [name, parameter] of Object.entries(components.parameters) as [string, Node][]) {
    if (parameter['in'] !== 'header' || typeof parameter['schema'] !== 'object') faults.push(`${name}: no header`)
  }
  return faults
}

it.each([
  {},
  { mode: 'leased' },
  { mode: 'leased', respond: 'async' },
  { required: false },
  { oldestKey: '1h', liveKeys: 5, problems: 'https://x/' },
] as const)('is sound for %j', (options) => {
  expect(faultsOf(options)).toEqual([])
  expect(JSON.parse(JSON.stringify(openApiFragment(options)))).toEqual(openApiFragment(options))
})

it('has the statuses that a route can refuse with, and no others', () => {
  const statuses = (options: OpenApiOptions) => Object.keys(openApiFragment(options).operation.responses).join(' ')
  expect(statuses({})).toBe('400 401 409 410 413 422 500 503')
  expect(statuses({ mode: 'leased' })).toBe('400 401 405 409 410 413 422 500 503')
  expect(statuses({ oldestKey: '1h', liveKeys: 5 })).toBe('400 401 409 410 412 413 422 429 500 503')
})

it('describes the problems as they are answered', async () => {
  const { route } = routeWorld()
  const problems = 'https://x/'
  const charges = route({ problems })
  const key = mintKey()
  await send(charges, { key })
  const { components } = openApiFragment({ problems })
  for (const sent of [{ key: undefined }, { key: '""' }, { key, body: '{}' }, { user: undefined }]) {
    const got = await send(charges, sent)
    const response = components.responses[`Problem${got.status}`] as { content: Node }
    const { examples } = response.content['application/problem+json'] as {
      examples: Record<string, { value: unknown }>
    }
    const answered = JSON.parse(got.text) as { detail: string }
    // What is wrong with this very key is not in the example.
    const detail = got.problem === 'key-invalid' ? expect.any(String) : answered.detail
    expect(examples[got.problem ?? '']?.value).toEqual({ ...answered, detail })
  }
  const { required, properties } = components.schemas['Problem'] as { required: string[]; properties: Node }
  // Only a key that somebody holds has one more.
  const members = Object.keys(JSON.parse((await send(charges, { key: undefined })).text) as Node)
  expect([...members, 'heldSinceMs', 'errors']).toEqual(Object.keys(properties))
  expect(required.every((name) => name in properties)).toBe(true)
})

it('describes the 202 of a route that answers before its work is done, and of no other', () => {
  const { components, operation } = openApiFragment({ mode: 'leased', respond: 'async' })
  expect(operation.responses['202']).toEqual({ $ref: '#/components/responses/WorkAccepted' })
  expect(components.responses['WorkAccepted']).toMatchObject({ headers: { Location: {} } })
  expect(openApiFragment({ mode: 'leased' }).operation.responses['202']).toBeUndefined()
})

it('describes the key as the route reads it', () => {
  const { components } = openApiFragment({ required: false, key: { header: 'X-Key', minLength: 16, maxLength: 64 } })
  expect(components.parameters['IdempotencyKey']).toMatchObject({
    name: 'X-Key',
    required: false,
    schema: { minLength: 16, maxLength: 130 },
  })
  const names = Object.values(
    openApiFragment({ mode: 'leased', oldestKey: 1, liveKeys: 1 }).components.responses,
  ).flatMap((response) =>
    Object.keys(
      (
        (response as { content: Record<string, { examples: Node }> }).content['application/problem+json'] as {
          examples: Node
        }
      ).examples,
    ),
  )
  const ofHandlers = ['precondition-failed', 'precondition-required']
  const ofStatus = ['work-not-found']
  expect([...new Set(names)].sort()).toEqual(
    Object.keys(problemKinds)
      .filter((name) => ![...ofHandlers, ...ofStatus].includes(name))
      .sort(),
  )
})

it('shows refusals in the shape that a route gives them', () => {
  const refusal = ({ status, name }: Problem) => reply(status, { error: { code: name } })
  const { components } = openApiFragment({ refusal })
  expect(components.schemas).toEqual({})
  const { content } = components.responses['Problem422'] as { content: Record<string, unknown> }
  expect(content).toEqual({
    'application/json': {
      examples: {
        'key-reused': { value: { error: { code: 'key-reused' } } },
        'sequence-reused': { value: { error: { code: 'sequence-reused' } } },
      },
    },
  })
})
