import http from 'node:http'
import https from 'node:https'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { scripted } from '../../../test/transaction/scripted-engine.js'
import { rejection } from '../../../test/transaction/scripted-world.js'
import { domainOf, type TransactionDefaults } from '../index.js'
import { guardCalls } from './calls.js'

// What stands in for the calls; that nothing leaves is counted at a server, in a process of its own.
const answer = {}
const fetched = vi.fn(function fetch(this: unknown, _input: unknown, _init?: unknown) {
  return answer
})
const requested = vi.fn((..._args: unknown[]) => answer)
const { fetch } = globalThis
const before = [http, https].map(({ request, get }) => ({ request, get }))

beforeAll(() => {
  Object.assign(fetched, { mark: 'kept' })
  Object.assign(globalThis, { fetch: fetched })
  for (const module of [http, https]) Object.assign(module, { request: requested, get: requested })
  guardCalls()
})
afterAll(() => {
  globalThis.fetch = fetch
  for (const [index, module] of [http, https].entries()) Object.assign(module, before[index])
})

const calls = {
  fetch: () => globalThis.fetch('http://a.example/x'),
  'http.request': () => http.request({ host: 'a.example' }),
  'http.get': () => http.get('http://a.example/x'),
  'https.request': () => https.request('https://a.example/x'),
  'https.get': () => https.get({ host: 'a.example' }),
}

const inside = (work: () => unknown, defaults: TransactionDefaults = {}): Promise<unknown> =>
  domainOf(scripted(), defaults).transact(async () => void work())

describe('a guarded call', () => {
  it('keeps its name, its length and what is attached to it', () => {
    expect(globalThis.fetch).not.toBe(fetched)
    expect([globalThis.fetch.name, globalThis.fetch.length]).toEqual([fetched.name, fetched.length])
    expect(globalThis.fetch).toHaveProperty('mark', 'kept')
  })

  it('hands arguments, this and answer through outside a transaction', () => {
    const self = {}
    const [input, init] = [{}, {}]
    expect(Reflect.apply(globalThis.fetch, self, [input, init])).toBe(answer)
    expect(fetched).toHaveBeenLastCalledWith(input, init)
    expect(fetched.mock.contexts.at(-1)).toBe(self)
    expect(fetched.mock.lastCall?.[0]).toBe(input)
  })

  it('is put up once', () => {
    const guarded = [globalThis.fetch, http.request, https.get]
    guardCalls()
    expect([globalThis.fetch, http.request, https.get].every((call, index) => call === guarded[index])).toBe(true)
  })

  it.each(Object.entries(calls))('%s goes out outside a transaction, and not inside one', async (name, call) => {
    const original = name === 'fetch' ? fetched : requested
    original.mockClear()
    expect(call()).toBe(answer)
    expect(original).toHaveBeenCalledTimes(1)
    let thrown: unknown
    const error = await rejection(
      inside(async () => {
        try {
          await call()
        } catch (reason) {
          thrown = reason
        }
      }),
    )
    expect(error).toMatchObject({ code: 'EFFECT_IN_TRANSACTION' })
    expect(thrown).toBe(error)
    expect(original).toHaveBeenCalledTimes(1)
  })

  it('of fetch refuses by its promise, of http by throwing', async () => {
    let promise: unknown
    let thrown: unknown
    await rejection(
      inside(() => {
        promise = globalThis.fetch('http://a.example')
        void (promise as Promise<unknown>).catch(() => {})
        try {
          http.get('http://a.example')
        } catch (error) {
          thrown = error
        }
      }),
    )
    expect(promise).toBeInstanceOf(Promise)
    expect(thrown).toMatchObject({ code: 'EFFECT_IN_TRANSACTION', details: { by: 'http' } })
  })

  it('goes out to an origin that the domain allows, to none on a network, and where effects are ignored', async () => {
    fetched.mockClear()
    const rule = { allowOrigins: ['http://a.example'] }
    await inside(() => globalThis.fetch('http://a.example/traces'), rule)
    await inside(() => globalThis.fetch('data:text/plain,hello'))
    await inside(() => globalThis.fetch('http://a.example'), { effects: 'ignore' })
    expect(fetched).toHaveBeenCalledTimes(3)
    await rejection(inside(() => globalThis.fetch('http://b.example/traces').catch(() => {}), rule))
    expect(fetched).toHaveBeenCalledTimes(3)
  })
})
