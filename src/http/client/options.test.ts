import { describe, expect, it } from 'vitest'
import { concurrency, tokenBudget } from '../../retry/index.js'
import { httpClient } from './client.js'

describe('the options of a client are judged when it is made', () => {
  it.each([
    ['fetch', 'secret'],
    ['fetch', null],
    ['policy', 'secret'],
    ['policy', null],
    ['budget', true],
    ['budget', tokenBudget()],
    ['breaker', { tryEnter: 'secret' }],
    ['breaker', false],
    ['limit', concurrency({ most: 1 })],
    ['maxOrigins', 0],
    ['maxOrigins', 1.5],
    ['maxOrigins', 100_001],
    ['maxOrigins', '7'],
    ['honoursKeys', 'https://secret.example'],
    ['honoursKeys', true],
    ['trusts', new Set(['https://secret.example'])],
    ['trusts', null],
    ['trusts', ['secret']],
    ['refusesBeforeProcessing', 'https://secret.example'],
    ['refusesBeforeProcessing', [7]],
    ['maxBodyBytes', Number.NaN],
    ['maxBodyBytes', -1],
    ['maxReadBytes', '16 MiB secret'],
    ['maxReadBytes', null],
  ])('%s: %o is refused by its name', (name, value) => {
    let error: unknown
    try {
      httpClient({ [name]: value } as never)
    } catch (reason) {
      error = reason
    }
    expect(error).toMatchObject({ code: 'ARGUMENT_INVALID', details: { path: name } })
    expect((error as Error).message).toContain(name)
    expect((error as Error).message).not.toContain('secret')
  })

  it.each([null, 'x', 7])('%o is no options', (options) => {
    expect(() => httpClient(options as never)).toThrow(
      expect.objectContaining({ code: 'ARGUMENT_INVALID', details: { path: 'options' } }),
    )
  })

  it.each(['budget', 'breaker', 'limit'])('policy.%s has its place elsewhere', (part) => {
    for (const value of [false, tokenBudget(), concurrency({ most: 1 })]) {
      const message = `policy.${part} is not for a client, which makes one for each origin: give it the option ${part}.`
      expect(() => httpClient({ policy: { [part]: value } })).toThrow(
        expect.objectContaining({ code: 'POLICY_INVALID', message, details: { path: `policy.${part}` } }),
      )
    }
  })

  it('takes what it is typed as, and undefined for what is not given', () => {
    const all = { honoursKeys: () => true, trusts: [new URL('http://127.0.0.1')], maxBodyBytes: 0 }
    expect(httpClient({ ...all, budget: false, maxReadBytes: Number.POSITIVE_INFINITY, maxOrigins: 1 })).toBeDefined()
    const names = ['fetch', 'policy', 'budget', 'breaker', 'maxOrigins', 'honoursKeys', 'trusts', 'maxReadBytes']
    expect(httpClient(Object.fromEntries(names.map((name) => [name, undefined])))).toBeDefined()
    expect(httpClient({ policy: { budget: undefined } as never })).toBeDefined()
  })
})
