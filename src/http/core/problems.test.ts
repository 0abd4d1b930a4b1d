import { expect, it } from 'vitest'
import { finish } from './answer/answer.js'
import { type ProblemName, problem, problemBase, problemKinds } from './problems.js'

const names = Object.keys(problemKinds) as ProblemName[]

it.each(names)('%s is a problem as RFC 9457 has them, with no more than it needs', async (name) => {
  const { status, title, detail, retryable } = problemKinds[name]
  const answer = await finish(problem(name), 10_000)
  const headers = Object.fromEntries(answer.headers)
  expect(JSON.parse(Buffer.from(answer.body as Uint8Array).toString())).toEqual({
    type: problemBase + name,
    title,
    status,
    detail,
    retryable,
  })
  expect([answer.status, headers['content-type'], headers['cache-control']]).toEqual([
    status,
    'application/problem+json',
    'no-store',
  ])
  expect(headers['retry-after']).toBe(retryable ? '1' : undefined)
})

it('differs where it is told to', async () => {
  const answer = problem('in-flight', {
    status: 503,
    detail: 'Later.',
    retryAfterSeconds: 7,
    base: 'https://x/',
    headers: { allow: 'POST' },
  })
  expect(JSON.parse(String(answer.body))).toMatchObject({ type: 'https://x/in-flight', status: 503, detail: 'Later.' })
  expect(Object.fromEntries(answer.headers)).toMatchObject({ 'retry-after': '7', allow: 'POST' })
  expect(Object.fromEntries(problem('in-flight', { retryable: false }).headers)['retry-after']).toBeUndefined()
})
