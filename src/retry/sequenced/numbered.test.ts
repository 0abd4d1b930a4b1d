import { describe, expect, expectTypeOf, it } from 'vitest'
import { Flaky, settle, setup } from '../../../test/retry/virtual-policy.js'
import type { SequenceNumber } from '../../identity/index.js'
import { retry } from '../policy.js'
import { failedBecause, permanent } from '../verdict.js'
import { sequenced } from './numbered.js'

describe('sequenced with a number that is kept elsewhere', () => {
  it('brings it with every attempt', async () => {
    const { clock, policy } = setup()
    const sent: unknown[] = []
    const call = policy.run(sequenced({ producer: 'relay', epoch: 2, number: 9 }), async ({ sequence, number }) => {
      expectTypeOf(sequence).toEqualTypeOf<SequenceNumber>()
      sent.push([sequence, number])
      if (number === 1) throw new Flaky('maybe')
    })
    await settle(clock, call)
    const numbered = { producer: 'relay', epoch: 2, number: 9 }
    expect(sent).toEqual([
      [numbered, 1],
      [numbered, 2],
    ])
    await retry(sequenced(numbered), (attempt) => expectTypeOf(attempt.sequence).toEqualTypeOf<SequenceNumber>())
  })

  it('hands the signal of the attempt on, and its verdicts', async () => {
    const { clock, policy } = setup({ attemptTimeout: '1s', attempts: 1 })
    let aborted = false
    const call = policy.run(sequenced({ producer: 'relay', epoch: 2, number: 9 }), ({ signal }) => {
      signal.addEventListener('abort', () => {
        aborted = true
      })
      return new Promise<never>(() => undefined)
    })
    await expect(settle(clock, call)).rejects.toMatchObject({ code: 'ATTEMPT_TIMEOUT' })
    expect(aborted).toBe(true)
    const refused = policy.run(sequenced({ producer: 'relay', epoch: 2, number: 9 }), async () =>
      failedBecause(permanent('no', 'no')),
    )
    await expect(settle(clock, refused)).rejects.toMatchObject({ code: 'ATTEMPT_FAILED' })
  })
})
