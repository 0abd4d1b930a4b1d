// A reader of the caller's own runs inside the attempt of the client, so a policy that it uses is an inner layer.

import { describe, expect, it } from 'vitest'
import { httpClient } from '../../src/http/client/index.js'
import { constantDelay, readOnly, retryPolicy, transient } from '../../src/retry/index.js'
import { answers, serversOfTest } from './sockets.js'

const server = serversOfTest()
const flaky = () => Object.assign(new Error('flaky'), { code: 'FLAKY' })
const settings = { attempts: 3, backoff: constantDelay(1), classify: () => transient('flaky', 'maybe') }

describe('a policy inside the reader of a client', () => {
  it.each(['the global fetch', 'a fetch of one’s own'])('leaves the repeats to the client: %s', async (name) => {
    const { origin, requests } = await server(answers(200, { body: 'x' }))
    const own: typeof fetch = (...args) => fetch(...args)
    const client = httpClient({ policy: settings, ...(name !== 'the global fetch' && { fetch: own }) })
    const inner = retryPolicy({ ...settings, budget: false })
    let calls = 0
    const reader = async (response: Response) => {
      await response.text()
      return inner.run(readOnly(), async () => {
        calls += 1
        throw flaky()
      })
    }
    await expect(client.read(origin, reader)).rejects.toThrow('flaky')
    expect({ calls, requests: requests.length }).toEqual({ calls: 3, requests: 3 })
  })
})
