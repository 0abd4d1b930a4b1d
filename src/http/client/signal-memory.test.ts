// One signal for many calls, as a service has for its own end: nothing of a call that is over stays with it.

import { getEventListeners } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { eventLoopTurn } from '../../kernel/index.js'
import { httpClient } from './index.js'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

const calls = 200

/** How much hangs on a signal, its listeners and what the runtime notes of it, once garbage is collected. */
async function hanging(signal: AbortSignal): Promise<number> {
  collectGarbage()
  // What was collected tells its finalizers in a later turn.
  await eventLoopTurn()
  const noted = Object.getOwnPropertySymbols(signal).map((symbol) => Reflect.get(signal, symbol) as unknown)
  const sizes = noted.map((value) => (value as { readonly size?: number } | undefined)?.size ?? 0)
  return sizes.reduce((sum, size) => sum + size, getEventListeners(signal, 'abort').length)
}

describe('a signal that outlives its calls', () => {
  it.each([
    ['that have no body', () => new Response(null), 'fetch'],
    ['whose body nobody reads', () => new Response('x'), 'fetch'],
    ['that are read', () => new Response('x'), 'read'],
    ['that are refusals', () => new Response('x', { status: 404 }), 'read'],
  ] as const)('keeps nothing of answers %s', async (_name, answer, how) => {
    const client = httpClient({ fetch: async () => answer() })
    const { signal } = new AbortController()
    const run = async (times: number): Promise<void> => {
      for (let call = 0; call < times; call++) {
        if (how === 'fetch') await client.fetch('http://service.example/', { signal })
        else await client.read('http://service.example/', 'text', { signal })
      }
    }
    await run(calls)
    // One call's own, or the runtime's, may come and go.
    await expect.poll(() => hanging(signal)).toBeLessThan(5)
    // All calls share one listener, which goes with the last of them.
    const listeners = async () => {
      await hanging(signal)
      return getEventListeners(signal, 'abort')
    }
    await expect.poll(listeners).toEqual([])
  })

  it('still ends the body of an answer that was handed over, however long ago, and is then left', async () => {
    let given: AbortSignal | null | undefined
    const deaf: typeof fetch = async (_url, init) => {
      given = init?.signal
      return new Response('x')
    }
    const controller = new AbortController()
    const response = await httpClient({ fetch: deaf }).fetch('http://service.example/', { signal: controller.signal })
    expect(await hanging(controller.signal)).toBeGreaterThan(0)
    expect(given?.aborted).toBe(false)
    const reason = new Error('mine')
    controller.abort(reason)
    expect([given?.aborted, given?.reason]).toEqual([true, reason])
    expect(await response.text()).toBe('x')
  })
})
