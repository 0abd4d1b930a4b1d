import { afterEach, describe, expect, it } from 'vitest'
import { eventLoopTurn, faultPoint } from '../kernel/index.js'
import {
  armFromEnvironment,
  type FaultPoints,
  faultEnvironment,
  faultPoints,
  InjectedFault,
  killAt,
} from './fault-points.js'

let points: FaultPoints | undefined
afterEach(() => points?.disarm())

/** Passes points as a runner does, and says where it failed. */
async function pass(...names: string[]): Promise<string> {
  for (const name of names) {
    try {
      await faultPoint(name)
    } catch (error) {
      return `${name}: ${(error as Error).message}`
    }
  }
  return 'through'
}

describe('armed fault points', () => {
  it('record what is reached, and do nothing else unless told', async () => {
    points = faultPoints()
    expect(await pass('a', 'b', 'a')).toBe('through')
    expect(points.reached).toEqual(['a', 'b', 'a'])
    expect([points.count('a'), points.count('b'), points.count('c'), points.count('*')]).toEqual([2, 1, 0, 3])
    points.disarm()
    expect(faultPoint('a')).toBeUndefined()
    expect(points.count('a')).toBe(2)
  })

  it('throw at the chosen time only', async () => {
    points = faultPoints()
    points.throwAt('a', new Error('now'), { nth: 2 })
    expect(await pass('a', 'b')).toBe('through')
    expect(await pass('a', 'b')).toBe('a: now')
    expect(await pass('a', 'b')).toBe('through')
  })

  it('throw a fault that no classifier knows, unless told which, several times where wanted', async () => {
    points = faultPoints()
    points.throwAt('a', undefined, { times: 2 })
    expect(await pass('a')).toBe('a: A fault was injected at a.')
    await expect(faultPoint('a')).rejects.toBeInstanceOf(InjectedFault)
    expect(await pass('a')).toBe('through')
  })

  it('stop where told, prove it, and go on when released', async () => {
    points = faultPoints()
    const stopped = points.stopAt('b')
    let end = ''
    const passing = pass('a', 'b', 'c').then((how) => {
      end = how
    })
    await stopped.reached
    await eventLoopTurn()
    expect([end, points.reached]).toEqual(['', ['a', 'b']])
    stopped.release()
    await passing
    expect([end, points.reached]).toEqual(['through', ['a', 'b', 'c']])
  })

  it('let go whoever stands still when disarmed', async () => {
    points = faultPoints()
    const stopped = points.stopAt('a')
    const passing = pass('a')
    await stopped.reached
    points.disarm()
    expect(await passing).toBe('through')
  })

  it('do something at the n-th of any points: every place in turn, until none is left', async () => {
    const struck: string[] = []
    for (let nth = 1; ; nth += 1) {
      points = faultPoints()
      points.at('*', (point) => void struck.push(point), { nth })
      await pass('a', 'b', 'c')
      if (struck.length < nth) break
    }
    expect(struck).toEqual(['a', 'b', 'c'])
  })

  it('count a visitor that comes while another waits', async () => {
    points = faultPoints()
    const first = points.stopAt('a', { nth: 1 })
    points.throwAt('a', new Error('second'), { nth: 2 })
    const waiting = pass('a')
    await first.reached
    expect(await pass('a')).toBe('a: second')
    first.release()
    expect(await waiting).toBe('through')
  })

  it('are counted from 1', () => {
    points = faultPoints()
    for (const options of [{ nth: 0 }, { nth: 1.5 }, { times: 0 }]) {
      expect(() => points?.at('a', () => undefined, options)).toThrow('from 1')
    }
  })
})

describe('REPRISE_FAULT', () => {
  it('is what the parent writes and the child reads', async () => {
    expect(killAt('transaction.committed')).toEqual({ REPRISE_FAULT: 'transaction.committed:1=kill' })
    points = armFromEnvironment(`${faultEnvironment('a', 'throw', 2).REPRISE_FAULT}, b=throw`)
    expect(await pass('a', 'c')).toBe('through')
    expect(await pass('a')).toContain('injected at a')
    expect(await pass('b')).toContain('injected at b')
  })

  it('arms nothing where it is not set, and refuses what it cannot read', () => {
    expect(armFromEnvironment('')).toBeUndefined()
    expect(faultPoint('a')).toBeUndefined()
    for (const text of ['a', 'a=explode', 'a:0=kill', '=kill', 'a=kill,', 'a:1=kill=kill']) {
      expect(() => armFromEnvironment(text), text).toThrow('REPRISE_FAULT')
    }
  })
})
