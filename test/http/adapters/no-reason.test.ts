// What a handler throws that is no error, with a route behind it that a framework could fall through to.

import { afterEach, describe, expect, it } from 'vitest'
import { adapterNames } from '../subject/subject.js'
import { openStage, type Stage } from './stage.js'

let stage: Stage | undefined
afterEach(async () => {
  await stage?.close()
  stage = undefined
})

describe.each(adapterNames)('a handler on %s', (adapter) => {
  it.each([
    ['nothing', undefined],
    ['null', null],
    ['an empty text', ''],
    ['0', 0],
    ['false', false],
    ['the word by which Express goes on to the next route', 'route'],
    ['the word by which Express leaves the router', 'router'],
  ])('that is rejected with %s is answered 500', async (_name, reason) => {
    stage = await openStage(adapter, { handler: () => Promise.reject(reason) })
    const answer = await fetch(`${stage.url}/api/things/7`, {
      method: 'POST',
      body: '{}',
      headers: { 'idempotency-key': 'k-1', 'content-type': 'application/json' },
      signal: AbortSignal.timeout(15_000),
    })
    expect(answer.status).toBe(500)
  })
})
