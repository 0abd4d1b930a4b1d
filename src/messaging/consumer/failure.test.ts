import { describe, expect, it } from 'vitest'
import { forCodes, transient } from '../../retry/index.js'
import { memory } from '../../stores/memory/index.js'
import { endingOf, Fenced, type HandlerProgress, Judged, reasonOf } from './failure.js'

const classify = forCodes({ BUSY: transient('busy', 'no') })
const none: HandlerProgress = { begun: true, called: false, threw: undefined }

describe('how the transaction of a handler ended', () => {
  it('is the fault of the handler where it threw, by its own error', async () => {
    const db = memory({ name: 'shop' })
    for (const [thrown, code, help] of [
      [Object.assign(new Error('b'), { code: 'BUSY' }), 'busy', 'transient'],
      [new TypeError('no'), 'TypeError', 'permanent'],
      ['text', 'unclassified', 'permanent'],
      [new Judged(transient('said', 'no')), 'said', 'transient'],
    ] as const) {
      const progress: HandlerProgress = { begun: true, called: true, threw: { error: thrown } }
      const error: unknown = await db
        .transact(() => {
          throw thrown
        })
        .catch((failure: unknown) => failure)
      expect(endingOf(error, progress, classify, undefined)).toMatchObject({ is: 'failed', code, verdict: { help } })
    }
  })

  it('is nobody’s where the lane was lost, and the store’s where nothing was thrown by the handler', () => {
    const lost = new AbortController()
    lost.abort(new Fenced())
    expect(endingOf(new Fenced(), none, classify, undefined)).toEqual({ is: 'fenced' })
    expect(endingOf(new Error('x'), none, classify, lost.signal)).toEqual({ is: 'fenced' })
    expect(endingOf(new Error('x'), none, classify, undefined)).toEqual({ is: 'away' })
  })

  it('is told in words, whatever was thrown', () => {
    const hostile = {
      toString: () => {
        throw new Error('no')
      },
    }
    expect(reasonOf(new TypeError('no amount'))).toBe('TypeError: no amount')
    expect(reasonOf(7)).toBe('7')
    expect(reasonOf(hostile)).toBe('It cannot be read.')
    expect(reasonOf(new Error('x'.repeat(5_000)))).toHaveLength(1_000)
  })
})
