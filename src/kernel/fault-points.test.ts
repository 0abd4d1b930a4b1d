import { describe, expect, it } from 'vitest'
import { armFaultPoints, faultPoint } from './fault-points.js'

describe('a fault point', () => {
  it('does nothing unless somebody armed it', () => {
    expect(faultPoint('here')).toBeUndefined()
  })

  it('runs the action while it is armed, and hands over what it throws', async () => {
    const reached: string[] = []
    const disarm = armFaultPoints((point) => {
      reached.push(point)
      if (point === 'there') throw new Error('broken on purpose')
    })
    await faultPoint('here')
    await expect(faultPoint('there')).rejects.toThrow('broken on purpose')
    disarm()
    expect(faultPoint('here')).toBeUndefined()
    expect(reached).toEqual(['here', 'there'])
  })

  it('is not disarmed by who armed it before', () => {
    const before = armFaultPoints(() => undefined)
    const after = armFaultPoints(() => undefined)
    before()
    expect(faultPoint('here')).toBeDefined()
    after()
    expect(faultPoint('here')).toBeUndefined()
  })
})
