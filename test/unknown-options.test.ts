// A misspelt option is refused by everything that takes options, and what was given is not repeated.

import { describe, expect, it } from 'vitest'
import { drill } from '../src/drill/index.js'
import { httpClient } from '../src/http/client/index.js'
import { dedupeWindow } from '../src/messaging/index.js'
import {
  backoffFrom,
  breakerFrom,
  budgetFrom,
  conditional,
  consecutiveBreaker,
  countBreaker,
  fullJitter,
  grpcBackoff,
  hedging,
  httpClassifierFor,
  perTarget,
  policyFrom,
  ratioBudget,
  readOnly,
  retry,
  retryPolicy,
  tokenBudget,
  windowBreaker,
} from '../src/retry/index.js'
import { callback } from '../src/stores/callback/index.js'
import { memory } from '../src/stores/memory/index.js'
import { postgres } from '../src/stores/postgres/index.js'
import { sqlite } from '../src/stores/sqlite/index.js'
import { postgresProxy } from '../src/testing/index.js'

const stray = { 'unheard-of': 'secret' } as never
const never = (): never => {
  throw new Error('was called')
}
const policy = retryPolicy().toJSON()
const breaker = consecutiveBreaker().data

const takers: readonly (readonly [name: string, code: string, use: (more: object) => unknown])[] = [
  ['retryPolicy', 'POLICY_INVALID', (more) => retryPolicy({ attempts: 2, ...more })],
  ['hedging', 'POLICY_INVALID', (more) => hedging({ after: 5, ...more })],
  ['policyFrom', 'POLICY_INVALID', (more) => policyFrom({ ...policy, ...more })],
  ['policyFrom, live', 'POLICY_INVALID', (more) => policyFrom(policy, more)],
  ['backoff', 'POLICY_INVALID', (more) => fullJitter({ baseMs: 5, ...more })],
  ['grpcBackoff', 'POLICY_INVALID', (more) => grpcBackoff({ initialMs: 5, maxMs: 5, multiplier: 1, ...more })],
  ['backoffFrom', 'POLICY_INVALID', (more) => backoffFrom({ ...policy.backoff, ...more })],
  ['tokenBudget', 'POLICY_INVALID', (more) => tokenBudget({ maxTokens: 5, ...more })],
  ['ratioBudget', 'POLICY_INVALID', (more) => ratioBudget({ ratio: 0.2, ...more })],
  ['budgetFrom, token', 'POLICY_INVALID', (more) => budgetFrom({ ...tokenBudget().data, ...more })],
  ['budgetFrom, ratio', 'POLICY_INVALID', (more) => budgetFrom({ ...ratioBudget().data, ...more })],
  ['consecutiveBreaker', 'POLICY_INVALID', (more) => consecutiveBreaker({ failures: 2, ...more })],
  ['countBreaker', 'POLICY_INVALID', (more) => countBreaker({ size: 20, ...more })],
  ['windowBreaker', 'POLICY_INVALID', (more) => windowBreaker({ window: '5s', ...more })],
  ['breakerFrom', 'POLICY_INVALID', (more) => breakerFrom({ ...breaker, ...more })],
  ['perTarget', 'POLICY_INVALID', (more) => perTarget(() => tokenBudget(), more)],
  ['conditional', 'ARGUMENT_INVALID', (more) => conditional(more)],
  ['httpClassifierFor', 'ARGUMENT_INVALID', (more) => httpClassifierFor(more)],
  ['httpClient', 'ARGUMENT_INVALID', (more) => httpClient({ maxOrigins: 5, ...more })],
  ['httpClient, policy', 'POLICY_INVALID', (more) => httpClient({ policy: { attempts: 2, ...more } })],
  ['drill', 'ARGUMENT_INVALID', (more) => drill({ oneIn: 5, ...more })],
  ['dedupeWindow', 'ARGUMENT_INVALID', (more) => dedupeWindow({ within: 5, most: 5, ...more })],
  ['memory', 'ARGUMENT_INVALID', (more) => memory({ name: 'a', attempts: 2, ...more })],
  ['sqlite', 'ARGUMENT_INVALID', (more) => sqlite({ name: 'a', file: 'a.db', attempts: 2, ...more })],
  ['postgres', 'ARGUMENT_INVALID', (more) => postgres({ name: 'a', pool: pool as never, attempts: 2, ...more })],
  [
    'callback',
    'ARGUMENT_INVALID',
    (more) => callback({ name: 'a', dialect: 'sqlite', transaction: never, query: never, attempts: 2, ...more }),
  ],
]
const pool = { on() {}, removeListener() {}, connect: never, totalCount: 0, idleCount: 0, waitingCount: 0 }

const calls: readonly (readonly [name: string, code: string, use: (more: object) => Promise<unknown>])[] = [
  ['run', 'ARGUMENT_INVALID', (more) => retryPolicy().run(readOnly(), never, { history: [], ...more })],
  ['once', 'ARGUMENT_INVALID', (more) => retryPolicy().once(never, { history: [], ...more })],
  ['retry', 'POLICY_INVALID', (more) => retry(readOnly(), never, { attempts: 2, ...more })],
  [
    'pass',
    'ARGUMENT_INVALID',
    (more) => dedupeWindow({ within: 5, most: 5 }).pass('a', never, { deadline: 5, ...more }),
  ],
  ['transact', 'ARGUMENT_INVALID', (more) => memory({ name: 'a' }).transact(never, { attempts: 2, ...more })],
  [
    'optimistic',
    'ARGUMENT_INVALID',
    (more) => memory({ name: 'a' }).optimistic({ table: 'a', where: { id: 1 }, decide: never, ...more }),
  ],
  [
    'optimistic, options',
    'ARGUMENT_INVALID',
    (more) =>
      memory({ name: 'a' }).optimistic({ table: 'a', where: { id: 1 }, decide: never }, { attempts: 2, ...more }),
  ],
  ['postgresProxy', 'ARGUMENT_INVALID', (more) => proxied({ ...more }, {})],
  ['a fault of postgresProxy', 'ARGUMENT_INVALID', (more) => proxied({}, { ...more })],
  [
    'transition',
    'ARGUMENT_INVALID',
    (more) =>
      memory({ name: 'a' }).transact((tx) =>
        tx.transition('a', { where: { id: 1 }, from: 'a', to: 'b', command: 'c', ...more }),
      ),
  ],
  [
    'lockRow',
    'ARGUMENT_INVALID',
    (more) => memory({ name: 'a' }).transact((tx) => tx.lockRow('a', { id: 1 }, { wait: 5, ...more })),
  ],
  [
    'conditionalUpdate',
    'ARGUMENT_INVALID',
    (more) => httpClient({ fetch: never }).conditionalUpdate('http://127.0.0.1/', { change: never, ...more }),
  ],
]

/** Starts a proxy with a fault, and stops it. */
async function proxied(options: object, fault: object): Promise<void> {
  const proxy = await postgresProxy({ upstream: { host: '127.0.0.1', port: 1 }, ...options })
  try {
    proxy.arm({ statement: 1, at: 'after-forward', action: 'fin', ...fault })
  } finally {
    await proxy.close()
  }
}

function expectRefusal(error: unknown, code: string): void {
  const option = Object.keys(stray)[0]
  expect(error).toMatchObject({ code, details: { position: expect.any(Number), option } })
  expect((error as Error).message).toMatch(new RegExp(`: ${option} is not known\\. Known are \\w+`))
  expect((error as Error).message).not.toContain(Object.values(stray)[0])
}

describe('an option that nobody knows', () => {
  it.each(takers)('is refused by %s', (_name, code, use) => {
    expect(() => use({ other: undefined })).not.toThrow()
    let refusal: unknown
    try {
      use(stray)
    } catch (error) {
      refusal = error
    }
    expectRefusal(refusal, code)
  })

  it.each(calls)('is refused by %s before anything is called', async (_name, code, use) => {
    expectRefusal(await use(stray).catch((error: unknown) => error), code)
    // Undefined counts as not given: then the function is reached.
    expect(await use({ other: undefined }).catch((error: unknown) => error)).not.toMatchObject({
      details: { position: 0 },
    })
  })
})
