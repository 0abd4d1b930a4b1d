import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { whenAborted } from './when-aborted.js'

describe('whenAborted', () => {
  it('puts one listener on a signal, however many wait, and none when all have left', () => {
    const { signal } = new AbortController()
    const leave = Array.from({ length: 50 }, () => whenAborted(signal, () => undefined))
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
    for (const go of leave) go()
    for (const go of leave) go()
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  })

  it('tells all who wait, in their order, once, and not those who left', () => {
    const controller = new AbortController()
    const heard: string[] = []
    const hear = (): void => void heard.push('twice')
    whenAborted(controller.signal, () => heard.push('first'))
    const leave = whenAborted(controller.signal, () => heard.push('gone'))
    whenAborted(controller.signal, hear)
    whenAborted(controller.signal, hear)
    leave()
    controller.abort()
    controller.abort()
    expect(heard).toEqual(['first', 'twice', 'twice'])
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
  })

  it('does not tell one who leaves while the others are told', () => {
    const controller = new AbortController()
    const heard: string[] = []
    let leave = (): void => undefined
    whenAborted(controller.signal, () => leave())
    leave = whenAborted(controller.signal, () => heard.push('gone'))
    controller.abort()
    expect(heard).toEqual([])
  })
})
