import { describe, expect, it } from 'vitest'
import { seededRandom } from '../kernel/index.js'
import { retryPolicy } from '../retry/index.js'
import { StormService } from './storm-service.js'
import { type StormOptions, stormSettings } from './storm-settings.js'

const policy = retryPolicy().toJSON()
const service = (options: Omit<StormOptions, 'policy'>) =>
  new StormService(stormSettings({ policy, ...options }), seededRandom(1))

describe('StormService', () => {
  it('works on as many requests as it has workers, and takes the others in turn', () => {
    const two = service({ capacity: 200, serviceMs: 10 })
    expect([1, 2, 3, 4].map((request) => two.admit(request))).toEqual(['working', 'working', 'waiting', 'waiting'])
    expect(two.queue).toBe(2)
    expect([two.next(), two.next(), two.next(), two.next()]).toEqual([3, 4, -1, -1])
    expect(two.admit(5)).toBe('working')
  })

  it('refuses beyond its limit', () => {
    const one = service({ capacity: 100, serviceMs: 10, queueLimit: 1 })
    expect([1, 2, 3].map((request) => one.admit(request))).toEqual(['working', 'waiting', 'refused'])
    one.next()
    expect(one.admit(4)).toBe('waiting')
  })

  it('keeps the order over a long queue', () => {
    const one = service({ capacity: 100, serviceMs: 10 })
    one.admit(-2)
    for (let request = 0; request < 20_000; request += 1) one.admit(request)
    for (let request = 0; request < 20_000; request += 1) expect(one.next()).toBe(request)
    expect(one.queue).toBe(0)
  })

  it.each([
    [0, 10],
    [25_000, 40],
  ])('takes its time, at %d ms a mean of %d ms', (nowMs, mean) => {
    const ten = service({ triggerCapacity: 0.25 })
    let total = 0
    for (let draw = 0; draw < 20_000; draw += 1) total += ten.workMs(nowMs)
    expect(total / 20_000 / mean).toBeCloseTo(1, 1)
  })
})
