import { describe, expect, it } from 'vitest'
import { rulesFromServiceConfig } from './service-config.js'

const retryPolicy = {
  maxAttempts: 4,
  initialBackoff: '0.1s',
  maxBackoff: '1s',
  backoffMultiplier: 2,
  retryableStatusCodes: ['UNAVAILABLE'],
}
const hedgingPolicy = { maxAttempts: 4, hedgingDelay: '0.5s', nonFatalStatusCodes: ['UNAVAILABLE', 'internal', 10] }
const none = { attempts: 1, backoff: { kind: 'constant', baseMs: 0, capMs: 0 }, retryableStatusCodes: [] }

function config(policy: object, name: object = {}): object {
  return { methodConfig: [{ name: [name], ...policy }] }
}

function withRetry(changes: object): object {
  return config({ retryPolicy: { ...retryPolicy, ...changes } })
}

describe('rulesFromServiceConfig', () => {
  it("reads A6's retry policy and throttling", () => {
    const whole = { ...config({ retryPolicy }), retryThrottling: { maxTokens: 10, tokenRatio: 0.1 } }
    expect(rulesFromServiceConfig(whole, 'a.B/C')).toEqual({
      attempts: 4,
      backoff: { kind: 'grpc', baseMs: 100, capMs: 1000, multiplier: 2 },
      budget: { kind: 'token', maxTokens: 10, tokenRatio: 0.1 },
      retryableStatusCodes: [14],
    })
  })

  it("reads A6's hedging policy, without repeats on top", () => {
    expect(rulesFromServiceConfig(config({ hedgingPolicy }), 'a.B/C')).toEqual({
      ...none,
      hedge: { attempts: 4, delayMs: 500, nonFatalStatusCodes: [14, 13, 10] },
    })
    expect(rulesFromServiceConfig(config({ hedgingPolicy: { maxAttempts: 2 } }), 'a.B/C').hedge).toEqual({
      attempts: 2,
      delayMs: 0,
      nonFatalStatusCodes: [],
    })
  })

  it('repeats nothing without a policy', () => {
    expect(rulesFromServiceConfig({}, 'a.B/C')).toEqual(none)
    expect(rulesFromServiceConfig(config({ timeout: '1s' }), 'a.B/C')).toEqual(none)
    expect(rulesFromServiceConfig(config({ retryPolicy }, { service: 'other.Service' }), 'a.B/C')).toEqual(none)
  })

  it('takes the most exact name, and of equals the first', () => {
    const entry = (maxAttempts: number, ...name: object[]): object => ({
      name,
      retryPolicy: { ...retryPolicy, maxAttempts },
    })
    const several = {
      methodConfig: [
        entry(2, {}),
        entry(3, { service: 'a.B' }, { service: 'a.D', method: 'E' }),
        entry(4, { service: 'a.B', method: 'C' }),
        entry(5, { service: 'a.B', method: 'C' }, { service: 'a.B' }, { service: '' }),
      ],
    }
    const attempts = (method: string): number => rulesFromServiceConfig(several, method).attempts
    expect(attempts('a.B/C')).toBe(4)
    expect(attempts('/a.B/C')).toBe(4)
    expect(attempts('a.B/X')).toBe(3)
    expect(attempts('a.D/E')).toBe(3)
    expect(attempts('a.D/X')).toBe(2)
    expect(attempts('a.BC/C')).toBe(2)
  })

  it.each([
    [5, 5],
    [6, 5],
    [1e6, 5],
    [2, 2],
  ])('maxAttempts %d is %d', (given, counts) => {
    expect(rulesFromServiceConfig(withRetry({ maxAttempts: given }), 'a/b').attempts).toBe(counts)
    expect(rulesFromServiceConfig(config({ hedgingPolicy: { maxAttempts: given } }), 'a/b').hedge?.attempts).toBe(
      counts,
    )
  })

  it.each([
    ['0.1s', 100],
    ['1s', 1000],
    ['1.005s', 1005],
    ['0.000000001s', 1e-6],
    ['3.000340012s', 3000.340012],
    ['120s', 120_000],
  ])('the duration %s is %d ms', (text, ms) => {
    expect(rulesFromServiceConfig(withRetry({ initialBackoff: text }), 'a/b').backoff.baseMs).toBe(ms)
  })

  it('knows all statuses by name in any case, and by number', () => {
    const read = (codes: unknown[]): readonly number[] =>
      rulesFromServiceConfig(withRetry({ retryableStatusCodes: codes }), 'a/b').retryableStatusCodes
    expect(read(['unavailable', 'Resource_Exhausted', 'CANCELLED', 'DATA_LOSS', 'UNAUTHENTICATED', 4])).toEqual([
      14, 8, 1, 15, 16, 4,
    ])
  })

  it('ignores decimals of tokenRatio beyond the third', () => {
    const rules = rulesFromServiceConfig({ retryThrottling: { maxTokens: 1000, tokenRatio: 0.5466 } }, 'a/b')
    expect(rules.budget).toEqual({ kind: 'token', maxTokens: 1000, tokenRatio: 0.546 })
  })

  const policyPath = 'methodConfig[0].retryPolicy'
  const hedgePath = 'methodConfig[0].hedgingPolicy'
  const hedged = (changes: object): object => config({ hedgingPolicy: { ...hedgingPolicy, ...changes } })
  const throttled = (changes: object): object => ({ retryThrottling: { maxTokens: 10, tokenRatio: 0.1, ...changes } })
  const durations = [
    undefined,
    1,
    '0s',
    '-1s',
    '1',
    '1m',
    '1.s',
    '.5s',
    '1.0000000001s',
    '1e3s',
    'NaNs',
    '99999999999999s',
    ['1s'],
  ]
  it.each<[string, unknown]>([
    ['config', undefined],
    ['config', '{}'],
    ['config', []],
    ['methodConfig', { methodConfig: {} }],
    ['methodConfig[0]', { methodConfig: [null] }],
    ['methodConfig[0].name', { methodConfig: [{ name: 'a' }] }],
    ['methodConfig[1].name[0]', { methodConfig: [{ name: [{}] }, { name: [7] }] }],
    ['methodConfig[0].name[0]', config({}, { method: 'C' })],
    ['methodConfig[0].name[0]', config({}, { service: 7 })],
    [hedgePath, config({ retryPolicy, hedgingPolicy })],
    [policyPath, config({ retryPolicy: 7 })],
    ...[undefined, 1, 0, -2, 2.5, '4', Number.NaN].map((maxAttempts): [string, unknown] => [
      `${policyPath}.maxAttempts`,
      withRetry({ maxAttempts }),
    ]),
    ...durations.map((initialBackoff): [string, unknown] => [
      `${policyPath}.initialBackoff`,
      withRetry({ initialBackoff }),
    ]),
    ...durations.map((maxBackoff): [string, unknown] => [`${policyPath}.maxBackoff`, withRetry({ maxBackoff })]),
    ...[undefined, 0, -1, '2', Number.POSITIVE_INFINITY].map((backoffMultiplier): [string, unknown] => [
      `${policyPath}.backoffMultiplier`,
      withRetry({ backoffMultiplier }),
    ]),
    ...[undefined, [], 'UNAVAILABLE', {}].map((retryableStatusCodes): [string, unknown] => [
      `${policyPath}.retryableStatusCodes`,
      withRetry({ retryableStatusCodes }),
    ]),
    ...['BUSY', '14', 17, -1, 1.5, null].map((code): [string, unknown] => [
      `${policyPath}.retryableStatusCodes[1]`,
      withRetry({ retryableStatusCodes: [14, code] }),
    ]),
    [`${hedgePath}.maxAttempts`, hedged({ maxAttempts: 1 })],
    [`${hedgePath}.hedgingDelay`, hedged({ hedgingDelay: '1' })],
    [`${hedgePath}.hedgingDelay`, hedged({ hedgingDelay: '' })],
    [`${hedgePath}.nonFatalStatusCodes[0]`, hedged({ nonFatalStatusCodes: ['X'] })],
    ...[undefined, 0, 1001, 0.5, '10'].map((maxTokens): [string, unknown] => [
      'retryThrottling.maxTokens',
      throttled({ maxTokens }),
    ]),
    ...[undefined, 0, -1, '0.1'].map((tokenRatio): [string, unknown] => [
      'retryThrottling.tokenRatio',
      throttled({ tokenRatio }),
    ]),
    ['retryThrottling', { retryThrottling: 7 }],
  ])('refuses %s (%#)', (path, given) => {
    expect(() => rulesFromServiceConfig(given, 'a.B/C')).toThrow(
      expect.objectContaining({ code: 'POLICY_INVALID', details: { path } }),
    )
  })

  it('refuses the whole config for what is wrong in the part of another method', () => {
    const other = config({ retryPolicy: { ...retryPolicy, maxAttempts: 1 } }, { service: 'other.Service' })
    expect(() => rulesFromServiceConfig(other, 'a.B/C')).toThrow(expect.objectContaining({ code: 'POLICY_INVALID' }))
  })

  it('never repeats what the config holds', () => {
    try {
      rulesFromServiceConfig(withRetry({ initialBackoff: 'sk_secret' }), 'a/b')
      expect.unreachable()
    } catch (error) {
      expect(JSON.stringify(error)).not.toContain('secret')
    }
  })
})
