import diagnostics from 'node:diagnostics_channel'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { RetryLayersEvent } from '../../telemetry/index.js'
import { constantDelay } from '../backoff.js'
import { readOnly } from '../guard.js'
import { historyOf } from '../history.js'
import type { RetryPolicyOptions } from '../options.js'
import { retryPolicy } from '../policy.js'
import { type Happened, transient } from '../verdict.js'
import { ownedByCaller } from './layers.js'

const policyOf = (name: string, options: RetryPolicyOptions = {}) => {
  const classify = (error: unknown) => transient('flaky', (error as { happened: Happened }).happened)
  return retryPolicy({ name, classify, backoff: constantDelay(0.01), budget: false, ...options })
}

describe('layers', () => {
  const events: RetryLayersEvent[] = []
  const listen = (event: unknown) => void events.push(event as RetryLayersEvent)
  beforeEach(() => {
    events.length = 0
    diagnostics.subscribe('reprise.retry.layers', listen)
  })
  afterEach(() => void diagnostics.unsubscribe('reprise.retry.layers', listen))

  async function nested(
    happened: Happened,
    inner: RetryPolicyOptions = {},
    outer: RetryPolicyOptions = {},
  ): Promise<number> {
    let calls = 0
    const sink = () => {
      calls += 1
      return Promise.reject(Object.assign(new Error('flaky'), { happened }))
    }
    const innerPolicy = policyOf('inner', inner)
    const outerPolicy = policyOf('outer', outer)
    const work = async () => {
      await null // the layer is known behind an await, too
      return innerPolicy.run(readOnly(), sink)
    }
    await expect(outerPolicy.run(readOnly(), work)).rejects.toThrow('flaky')
    return calls
  }

  it('three times three makes three calls, and the product is reported', async () => {
    expect(await nested('maybe')).toBe(3)
    expect(events).toEqual(Array(3).fill({ policy: 'inner', depth: 2, declared: 9, allowed: 1 }))
  })

  it('what provably did not happen is exempt', async () => {
    expect(await nested('no')).toBe(9)
    expect(events).toHaveLength(3)
  })

  it('an inner layer repeats when it is told to, and the product is reported all the same', async () => {
    expect(await nested('maybe', { layer: 'own' })).toBe(9)
    expect(events).toEqual(Array(3).fill({ policy: 'inner', depth: 2, declared: 9, allowed: 3 }))
  })

  it('a layer that does not repeat owns nothing: one attempt, or no guard', async () => {
    expect(await nested('maybe', {}, { attempts: 1 })).toBe(3)
    let calls = 0
    const failing = () => {
      calls += 1
      return Promise.reject(Object.assign(new Error('flaky'), { happened: 'maybe' }))
    }
    const inner = policyOf('inner')
    await expect(policyOf('outer').once(() => inner.run(readOnly(), failing))).rejects.toMatchObject({
      code: 'UNKNOWN_OUTCOME',
    })
    expect(calls).toBe(3)
    expect(events).toEqual([])
  })

  it('the inner failure says that the layer above owns the repeats', async () => {
    const inner = policyOf('inner')
    const failing = () => Promise.reject(Object.assign(new Error('flaky'), { happened: 'maybe' }))
    const error = await policyOf('outer', { attempts: 2 })
      .run(readOnly(), () => inner.run(readOnly(), failing))
      .catch((reason: unknown) => reason)
    expect(historyOf(error)?.stop).toBe('attempts')
    const once = await ownedByCaller(() => inner.run(readOnly(), failing)).catch((reason: unknown) => reason)
    expect(historyOf(once)).toMatchObject({ stop: 'layer', attempts: [{ number: 1 }] })
  })

  it('policies side by side, and those left behind by a call that is over, own their repeats', async () => {
    const other = policyOf('other')
    let calls = 0
    const failing = () => {
      calls += 1
      return Promise.reject(Object.assign(new Error('flaky'), { happened: 'maybe' }))
    }
    let background: Promise<unknown> | undefined
    await policyOf('outer').run(readOnly(), async () => {
      background = new Promise((resolve) => setTimeout(resolve, 20)).then(() => other.run(readOnly(), failing))
      background.catch(() => undefined)
    })
    await expect(background).rejects.toThrow('flaky')
    expect(calls).toBe(3)
  })

  it('a policy inside itself is a layer inside a layer', async () => {
    const policy = policyOf('itself')
    policyOf('other')
    let calls = 0
    const inner = () => {
      calls += 1
      return Promise.reject(Object.assign(new Error('flaky'), { happened: 'maybe' }))
    }
    const work = async () => {
      await null
      return policy.run(readOnly(), inner)
    }
    await expect(policy.run(readOnly(), work)).rejects.toThrow('flaky')
    expect(calls).toBe(3)
    expect(events).toEqual(Array(3).fill({ policy: 'itself', depth: 2, declared: 9, allowed: 1 }))
  })

  it('what starts only when it is awaited starts inside, and a lazy promise too', async () => {
    const inner = policyOf('inner')
    let calls = 0
    const failing = () => {
      calls += 1
      return Promise.reject(Object.assign(new Error('flaky'), { happened: 'maybe' }))
    }
    class LazyPromise extends Promise<unknown> {
      // biome-ignore lint/suspicious/noThenProperty: a query that starts when it is awaited looks like this.
      override then: Promise<unknown>['then'] = (resolve, reject) =>
        inner.run(readOnly(), failing).then(resolve, reject)
      static override get [Symbol.species]() {
        return Promise
      }
    }
    const lazy = new LazyPromise(() => undefined)
    // biome-ignore lint/suspicious/noThenProperty: likewise.
    const query = { then: lazy.then } as PromiseLike<unknown>
    await expect(policyOf('outer').run(readOnly(), () => query)).rejects.toThrow('flaky')
    await expect(policyOf('outer').run(readOnly(), () => lazy)).rejects.toThrow('flaky')
    expect(calls).toBe(6)
  })

  it('a body that goes on after its time-out is still a layer to what it calls', async () => {
    const inner = policyOf('inner')
    let calls = 0
    const failing = () => {
      calls += 1
      return Promise.reject(Object.assign(new Error('flaky'), { happened: 'maybe' }))
    }
    let goOn = () => {}
    const gate = new Promise<void>((resolve) => {
      goOn = resolve
    })
    let zombie: Promise<unknown> | undefined
    const outer = policyOf('outer', { attempts: 2, attemptTimeout: 5 })
    const body = ({ number }: { readonly number: number }) => {
      if (number > 1) return 'second'
      zombie = gate.then(() => inner.run(readOnly(), failing))
      return zombie
    }
    const classified = outer.run(readOnly(), body)
    expect(await classified).toBe('second')
    goOn()
    await expect(zombie).rejects.toThrow('flaky')
    expect(calls).toBe(1)
  })
})
