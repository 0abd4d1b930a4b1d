import { describe, expect, it } from 'vitest'
import { unclassified } from '../verdict.js'
import { defaultClassifier } from './default-classifier.js'

describe('defaultClassifier', () => {
  it('knows answers, networks and aborts, and leaves the rest unclassified', () => {
    expect(defaultClassifier({ status: 503 })).toMatchObject({ why: 'http-503' })
    expect(defaultClassifier({ code: 'EPIPE' })).toMatchObject({ why: 'EPIPE' })
    expect(defaultClassifier(new DOMException('', 'AbortError'))).toMatchObject({ help: 'permanent', why: 'aborted' })
    expect(defaultClassifier(new SyntaxError('Unexpected end of JSON input'))).toBeUndefined()
    expect(unclassified).toEqual({ help: 'permanent', happened: 'maybe', why: 'unclassified' })
  })

  it('survives circles, hostile getters and values that are no errors', () => {
    const circle: { cause?: unknown } = {}
    circle.cause = circle
    const hostile = {
      get code(): string {
        throw new Error('mine')
      },
    }
    const proxy: object = new Proxy({}, { get: () => proxy, has: () => true })
    for (const value of [circle, hostile, proxy, undefined, null, 0, '', 'ECONNREFUSED', Symbol('s')]) {
      expect(defaultClassifier(value)).toBeUndefined()
    }
  })
})
