import diagnostics from 'node:diagnostics_channel'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { RetryLayersEvent } from '../../telemetry/index.js'
import { constantDelay } from '../backoff.js'
import { readOnly } from '../guard.js'
import { historyOf } from '../history.js'
import type { RetryPolicyOptions } from '../options.js'
import { policyFrom, retryPolicy } from '../policy.js'
import { type Happened, transient } from '../verdict.js'
import { hedging } from './hedge.js'
import { ownedByCaller } from './layers.js'

const policyOf = (name: string, options: RetryPolicyOptions = {}) => {
  const classify = (error: unknown) => transient('flaky', (error as { happened: Happened }).happened)
  return retryPolicy({ name, classify, backoff: constantDelay(0.01), budget: false, ...options })
}

// The meetings of one intent that its outermost layer repeats: each with what was spent before it.
const meetings = (meeting: object, ...spent: number[]) =>
  spent.map((count) => ({ kind: 'policy', depth: 2, declared: 9, allowed: 1, allowance: 3, spent: count, ...meeting }))

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
    expect(events).toEqual(meetings({ policy: 'inner' }, 0, 1, 2))
  })

  it('what provably did not happen is repeated where it happened, and by nobody else', async () => {
    expect(await nested('no')).toBe(3)
    expect(events).toEqual(meetings({ policy: 'inner' }, 0))
  })

  it('the allowance is the largest number of attempts on the way', async () => {
    expect(await nested('no', { attempts: 5 })).toBe(5)
    expect(await nested('no', { attempts: 2 }, { attempts: 5 })).toBe(5)
    expect(await nested('no', { attempts: 1 }, { attempts: 4 })).toBe(4)
    expect(events.map(({ allowance }) => allowance)).toContain(5)
  })

  it('calls made by one body share it, also at the same time', async () => {
    let calls = 0
    const sink = () => {
      calls += 1
      return Promise.reject(Object.assign(new Error('flaky'), { happened: 'no' }))
    }
    const inner = policyOf('inner')
    const body = async () => {
      const ended = await Promise.allSettled([1, 2, 3, 4].map(() => inner.run(readOnly(), sink)))
      throw (ended[0] as PromiseRejectedResult).reason
    }
    const error = await policyOf('outer')
      .run(readOnly(), body)
      .catch((reason: unknown) => reason)
    expect(calls).toBe(4 + 2)
    expect(historyOf(error)).toMatchObject({ stop: 'allowance', attempts: [{ number: 1 }] })
  })

  it('hedges spend of it', async () => {
    const hedged = policyOf('outer', { hedge: hedging({ after: 1 }) })
    let calls = 0
    const inner = policyOf('inner', { attempts: 2 })
    const sink = () => {
      calls += 1
      return Promise.reject(Object.assign(new Error('flaky'), { happened: 'no' }))
    }
    await expect(hedged.run(readOnly(), () => inner.run(readOnly(), sink))).rejects.toThrow('flaky')
    expect(calls).toBe(3)
  })

  it('an inner layer repeats when it is told to, and the product is reported all the same', async () => {
    expect(await nested('maybe', { layer: 'own' })).toBe(9)
    expect(events).toEqual(meetings({ policy: 'inner', allowed: 3 }, 0, 0, 0))
  })

  it('layers that are not ours count where they are declared', async () => {
    const foreignLayers = [{ name: 'envoy', attempts: 2 }]
    expect(await nested('maybe', { foreignLayers }, { attempts: 2, foreignLayers })).toBe(2)
    expect(events[0]).toMatchObject({ policy: 'inner', depth: 4, declared: 3 * 2 * (2 * 2), allowance: 3 })
    const { attempts, foreignLayers: kept } = policyOf('kept', { foreignLayers }).toJSON()
    expect({ attempts, kept }).toEqual({ attempts: 3, kept: foreignLayers })
    expect(policyFrom(policyOf('kept', { foreignLayers }).toJSON()).toJSON().foreignLayers).toEqual(foreignLayers)
    for (const wrong of [{}, [{}], [{ name: 'sdk', attempts: 101 }], [{ name: 'sdk', attempts: 2, retries: 1 }]]) {
      const refused = expect.objectContaining({ code: 'POLICY_INVALID', details: { path: 'foreignLayers' } })
      expect(() => policyOf('refused', { foreignLayers: wrong as never })).toThrow(refused)
    }
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
    // The unguarded one repeats what provably did not happen, so it is a layer all the same.
    expect(events).toEqual(meetings({ policy: 'inner', allowed: 3 }, 0))
  })

  it('an unguarded call is a layer for what provably did not happen', async () => {
    let calls = 0
    const failing = () => {
      calls += 1
      return Promise.reject(Object.assign(new Error('flaky'), { happened: 'no' }))
    }
    const inner = policyOf('inner')
    await expect(policyOf('outer').once(() => inner.once(failing))).rejects.toThrow('flaky')
    expect(calls).toBe(3)
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
    expect(events).toEqual(meetings({ policy: 'itself' }, 0, 1, 2))
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
