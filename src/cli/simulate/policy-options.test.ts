import { describe, expect, it } from 'vitest'
import {
  concurrency,
  consecutiveBreaker,
  countBreaker,
  type PolicyData,
  ratioBudget,
  retryPolicy,
  windowBreaker,
} from '../../retry/index.js'
import { readOptions, UsageError } from '../option-table.js'
import { policyOptions, policyWith, usualPolicy } from './policy-options.js'

const policy = (line: string, file?: PolicyData) =>
  policyWith(readOptions(line === '' ? [] : line.split(' '), policyOptions), file)

describe('policyWith', () => {
  it('is the usual policy without options, the defaults of the library', () => {
    const library = retryPolicy({ name: 'policy', attemptTimeout: '1s' }).toJSON()
    expect(policy('')).toEqual(library)
    expect(policy('')).toEqual(usualPolicy)
  })

  it('has the defaults of the library for every kind', () => {
    expect(policy('--budget ratio').budget).toEqual(ratioBudget().data)
    expect(policy('--breaker consecutive').breaker).toEqual(consecutiveBreaker().data)
    expect(policy('--breaker count').breaker).toEqual(countBreaker().data)
    expect(policy('--breaker window').breaker).toEqual(windowBreaker().data)
  })

  it('has a limit where one is given, and changes the one of a file', () => {
    expect(policy('')).not.toHaveProperty('limit')
    expect(policy('--most 20').limit).toEqual(concurrency({ most: 20 }).data)
    const file = retryPolicy({ limit: concurrency({ most: 5, queue: 7 }) }).toJSON()
    expect(policy('--most 6', file).limit).toEqual({ kind: 'concurrency', most: 6, queue: 7 })
    expect(() => policy('--queue 3')).toThrow('--queue needs --most')
    expect(() => policy('--most 0')).toThrow(expect.objectContaining({ code: 'POLICY_INVALID' }))
  })

  it('takes every option', () => {
    expect(policy('--attempts 6 --attempt-timeout-ms 200 --deadline-ms 900')).toMatchObject({
      attempts: 6,
      attemptTimeoutMs: 200,
      deadlineMs: 900,
    })
    expect(policy('--backoff grpc --base-ms 10 --cap-ms 20 --multiplier 1.5').backoff).toEqual({
      kind: 'grpc',
      baseMs: 10,
      capMs: 20,
      multiplier: 1.5,
    })
    expect(policy('--backoff constant --base-ms 0').backoff).toEqual({ kind: 'constant', baseMs: 0, capMs: 0 })
    expect(policy('--max-tokens 100 --token-ratio 0.5').budget).toEqual({
      kind: 'token',
      maxTokens: 100,
      tokenRatio: 0.5,
    })
    expect(
      policy(
        '--budget ratio --ratio 0.2 --budget-window-ms 5000 --refill-per-second 1 --floor-per-second 2 --initial 3',
      ).budget,
    ).toEqual({ kind: 'ratio', ratio: 0.2, windowMs: 5000, refillPerSecond: 1, floorPerSecond: 2, initial: 3 })
    expect(
      policy('--breaker window --breaker-window-ms 1000 --failure-ratio 0.2 --minimum-calls 3').breaker,
    ).toMatchObject({
      windowMs: 1000,
      failureRatio: 0.2,
      minimumCalls: 3,
    })
    expect(policy('--breaker count --size 20').breaker).toMatchObject({ kind: 'count', size: 20 })
    expect(policy('--breaker consecutive --failures 2 --probes 3 --open-for-ms 500').breaker).toEqual({
      kind: 'consecutive',
      failures: 2,
      probes: 3,
      openFor: { kind: 'constant', baseMs: 500, capMs: 500 },
    })
    expect(policy('--budget none').budget).toBeUndefined()
  })

  it('changes only what was asked for of a file', () => {
    const file = retryPolicy({
      name: 'own',
      attempts: 5,
      budget: ratioBudget({ ratio: 0.3 }),
      breaker: countBreaker(),
    }).toJSON()
    expect(policy('', file)).toEqual(file)
    expect(policy('--initial 4 --size 50', file)).toEqual({
      ...file,
      budget: { ...file.budget, initial: 4 },
      breaker: { ...file.breaker, size: 50 },
    })
    expect(policy('--breaker none', file).breaker).toBeUndefined()
  })

  it('forgets a growth that was meant for another kind of backoff', () => {
    const file = { ...usualPolicy, backoff: { kind: 'grpc', baseMs: 10, capMs: 90, multiplier: 1.1 } as const }
    expect(policy('--backoff full', file).backoff).toEqual({ kind: 'full', baseMs: 10, capMs: 90 })
  })

  it.each([
    ['--ratio 0.2', '--ratio needs --budget ratio; it is token here'],
    ['--budget none --max-tokens 5', '--max-tokens needs --budget token; it is none here'],
    ['--failures 3', '--failures needs --breaker consecutive; it is none here'],
    ['--breaker window --size 3', '--size needs --breaker count; it is window here'],
  ])('refuses what would change nothing: %s', (line, message) => {
    expect(() => policy(line)).toThrowError(new UsageError(message))
  })

  it.each(['--attempts 21', '--max-tokens 0', '--base-ms 100 --cap-ms 50', '--attempt-timeout-ms 0.5'])(
    'refuses what a policy refuses: %s',
    (line) => {
      expect(() => policy(line)).toThrowError(expect.objectContaining({ code: expect.stringMatching(/_INVALID$/) }))
    },
  )
})
