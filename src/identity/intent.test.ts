import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { deadlineAfter, remainingMs } from '../kernel/index.js'
import { manualClock } from '../testing/index.js'
import { derive } from './derive.js'
import { currentDeadline, currentIntent, deriveKey, withIntent } from './intent.js'
import { mintKey } from './key.js'

describe('withIntent', () => {
  it('carries the key through awaits, for derivation', async () => {
    const key = mintKey()
    const derived = await withIntent({ key }, async () => {
      await wait(1)
      return [deriveKey('capture'), deriveKey('mail'), currentIntent()?.key]
    })
    expect(derived).toEqual([derive(key, 'capture'), derive(key, 'mail'), key])
    expect(currentIntent()).toBeUndefined()
  })

  it('keeps intents that run side by side apart', async () => {
    const keys = Array.from({ length: 50 }, () => mintKey())
    const seen = await Promise.all(
      keys.map((key) =>
        withIntent({ key }, async () => {
          await wait(1)
          return currentIntent()?.key
        }),
      ),
    )
    expect(seen).toEqual(keys)
  })

  it('lets a deadline only shrink, and gives the outer one back afterwards', () => {
    const clock = manualClock()
    const late = deadlineAfter('5s', clock)
    const soon = deadlineAfter('1s', clock)
    withIntent({ deadline: soon }, () => {
      withIntent({ deadline: late }, () => expect(currentIntent()?.deadline).toBe(soon))
      expect(currentIntent()?.deadline).toBe(soon)
    })
    withIntent({ deadline: late }, () => {
      withIntent({ deadline: soon, key: mintKey() }, () => {
        expect(remainingMs(currentIntent()?.deadline ?? late, clock)).toBe(1_000)
      })
      expect(currentIntent()?.deadline).toBe(late)
      expect(currentDeadline()).toBe(late)
      expect(currentIntent()?.key).toBeUndefined()
    })
  })

  it('inherits the outer key and deadline independently', () => {
    const key = mintKey()
    const deadline = deadlineAfter('1s')
    withIntent({ key }, () => withIntent({ deadline }, () => expect(currentIntent()).toEqual({ key, deadline })))
    withIntent({ deadline }, () => withIntent({ key }, () => expect(currentIntent()).toEqual({ key, deadline })))
  })

  it('leaves nothing behind for background work', async () => {
    let background: Promise<unknown> | undefined
    await withIntent({ key: mintKey(), deadline: deadlineAfter('1s') }, async () => {
      background = wait(20).then(() => currentIntent())
      expect(currentIntent()).toBeDefined()
    })
    expect(await background).toBeUndefined()
  })

  it('ends also when the work throws', async () => {
    expect(() =>
      withIntent({ key: mintKey() }, () => {
        throw new Error('no')
      }),
    ).toThrow('no')
    await expect(withIntent({ key: mintKey() }, () => Promise.reject(new Error('later')))).rejects.toThrow('later')
    expect(currentIntent()).toBeUndefined()
  })
})

describe('deriveKey', () => {
  it('refuses where no intent is in flight, or one without a key', () => {
    expect(() => deriveKey('capture')).toThrow(expect.objectContaining({ code: 'INTENT_MISSING' }))
    withIntent({ deadline: deadlineAfter('1s') }, () => {
      expect(() => deriveKey('capture')).toThrow(expect.objectContaining({ code: 'INTENT_MISSING' }))
    })
  })
})
