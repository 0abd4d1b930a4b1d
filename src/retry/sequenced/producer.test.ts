import { describe, expect, it } from 'vitest'
import { Flaky, settle, setup } from '../../../test/retry/virtual-policy.js'
import { acceptedHeader, type SequenceNumber } from '../../identity/index.js'
import { failedBecause, permanent } from '../verdict.js'
import { sequenced } from './numbered.js'
import { producer } from './producer.js'

const till = () => producer({ name: 'till', epoch: 7 })
const at = (number: number): SequenceNumber => ({ producer: 'till', epoch: 7, number })

describe('a producer', () => {
  it('gives one number to an intent, the same in every attempt, and the next one to the next', async () => {
    const { clock, policy } = setup()
    const sender = till()
    const sent: SequenceNumber[] = []
    for (const failures of [2, 0, 1]) {
      let left = failures
      const call = policy.run(sequenced(sender), async ({ sequence }) => {
        sent.push(sequence)
        left -= 1
        if (left >= 0) throw new Flaky('maybe')
        return 'done'
      })
      expect(await settle(clock, call)).toBe('done')
    }
    expect(sent).toEqual([1, 1, 1, 2, 3, 3].map(at))
    expect([sender.last, sender.unsettled]).toEqual([3, undefined])
  })

  it('does not go on while a number may have been accepted, until its guard has succeeded', async () => {
    const { clock, policy } = setup({ attempts: 2 })
    const sender = till()
    const guard = sequenced(sender)
    const sent: number[] = []
    const body = (fails: boolean) => async (attempt: { readonly sequence: SequenceNumber }) => {
      sent.push(attempt.sequence.number)
      if (fails) throw new Flaky('maybe')
    }
    await expect(settle(clock, policy.run(guard, body(true)))).rejects.toThrow('flaky')
    expect([sender.last, sender.unsettled]).toEqual([0, 1])
    await expect(policy.run(sequenced(sender), body(false))).rejects.toMatchObject({
      code: 'SEQUENCE_UNSETTLED',
      details: { number: 1, because: 'unknown' },
    })
    await settle(clock, policy.run(guard, body(false)))
    await settle(clock, policy.run(sequenced(sender), body(false)))
    expect(sent).toEqual([1, 1, 1, 2])
    expect([sender.last, sender.unsettled]).toEqual([2, undefined])
  })

  it('takes a later proof for no proof about an earlier call', async () => {
    const { clock, policy } = setup({ attempts: 1 })
    const sender = till()
    const guard = sequenced(sender)
    const failing = (happened: 'no' | 'maybe') =>
      policy.run(guard, async () => {
        throw new Flaky(happened)
      })
    await expect(settle(clock, failing('maybe'))).rejects.toThrow('flaky')
    await expect(settle(clock, failing('no'))).rejects.toThrow('flaky')
    expect(sender.unsettled).toBe(1)
    await expect(policy.run(sequenced(sender), async () => 1)).rejects.toMatchObject({ code: 'SEQUENCE_UNSETTLED' })
  })

  it('gives a number that was provably not used to the next intent, so that there is no gap', async () => {
    const { clock, policy } = setup({ attempts: 2 })
    const sender = till()
    const unsent = policy.run(sequenced(sender), async () => {
      throw new Flaky('no')
    })
    await expect(settle(clock, unsent)).rejects.toThrow('flaky')
    const refused = await settle(
      clock,
      policy.run(sequenced(sender), async () => new Response(null, { status: 422 })),
    )
    expect(refused.status).toBe(422)
    await settle(
      clock,
      policy.run(sequenced(sender), async ({ sequence }) => expect(sequence).toEqual(at(1))),
    )
    expect([sender.last, sender.unsettled]).toEqual([1, undefined])
  })

  it.each([422, 409, 500])(
    'counts a number as used where an answer of %d says so, and gives the next one',
    async (status) => {
      const { clock, policy } = setup({ attempts: 1 })
      const answered = async (
        sender: ReturnType<typeof till>,
        said: string,
        answer: (response: Response) => unknown,
      ) => {
        const response = new Response(null, { status, headers: { [acceptedHeader.name]: said } })
        await settle(
          clock,
          policy.run(sequenced(sender), async () => answer(response)),
        ).catch(() => undefined)
        return [sender.last, sender.unsettled]
      }
      const used = acceptedHeader.write(at(1))
      expect(await answered(till(), used, (response) => response)).toEqual([1, undefined])
      const judged = permanent('own', 'no')
      expect(await answered(till(), used, (response) => failedBecause(judged, { response }))).toEqual([1, undefined])
      const throwing = (response: Response) => Promise.reject(Object.assign(new Error('refused'), { status, response }))
      expect(await answered(till(), used, throwing)).toEqual([1, undefined])
      // Known there by another name. Of another number or epoch, or unreadable: nothing is said of this one.
      expect(await answered(till(), '"shop/till";epoch=7;number=1', (response) => response)).toEqual([1, undefined])
      const unsaid = status === 500 ? [0, 1] : [0, undefined]
      for (const other of ['"till";epoch=7;number=2', '"till";epoch=8;number=1', 'yes', `${used}, ${used}`]) {
        expect(await answered(till(), other, (response) => response)).toEqual(unsaid)
      }
    },
  )

  it('is not blocked by options that are refused', async () => {
    const { policy } = setup()
    const sender = till()
    const frozen = Object.freeze([])
    for (const options of [{ history: 5 }, { history: {} }, { history: frozen }, { signal: 1 }, { unknown: 1 }, null]) {
      const refused = policy.run(sequenced(sender), async () => expect.unreachable(), options as never)
      await expect(refused).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
      expect(sender.unsettled).toBeUndefined()
    }
    expect(await policy.run(sequenced(sender), async ({ sequence }) => sequence)).toEqual(at(1))
  })

  it('counts an answer that may come after an effect as unsettled, though the call is fulfilled with it', async () => {
    const { clock, policy } = setup({ attempts: 2 })
    const sender = till()
    const call = policy.run(sequenced(sender), async () => new Response(null, { status: 500 }))
    expect((await settle(clock, call)).status).toBe(500)
    expect(sender.unsettled).toBe(1)
  })

  it('counts an attempt that was given up as unsettled', async () => {
    const { clock, policy } = setup({ attempts: 1, attemptTimeout: '1s' })
    const sender = till()
    await expect(
      settle(
        clock,
        policy.run(sequenced(sender), () => new Promise(() => undefined)),
      ),
    ).rejects.toThrow()
    expect(sender.unsettled).toBe(1)
    const other = till()
    const controller = new AbortController()
    const aborted = setup().policy.run(sequenced(other), () => new Promise(() => undefined), {
      signal: controller.signal,
    })
    controller.abort()
    await expect(aborted).rejects.toThrow()
    expect(other.unsettled).toBe(1)
  })

  it('uses no number up where no attempt is made', async () => {
    const { policy } = setup()
    const sender = till()
    const signal = AbortSignal.abort()
    await expect(policy.run(sequenced(sender), async () => 1, { signal })).rejects.toThrow()
    await expect(policy.run(sequenced(sender), 'no function' as never)).rejects.toMatchObject({
      code: 'ARGUMENT_INVALID',
    })
    expect(await policy.run(sequenced(sender), async ({ sequence }) => sequence)).toEqual(at(1))
  })

  it('has one number under way at a time', async () => {
    const { policy } = setup()
    const sender = till()
    let finish: (value: string) => void = () => undefined
    const first = policy.run(sequenced(sender), () => new Promise<string>((resolve) => (finish = resolve)))
    await expect(policy.run(sequenced(sender), async () => 1)).rejects.toMatchObject({
      code: 'SEQUENCE_UNSETTLED',
      details: { number: 1, because: 'under-way' },
    })
    finish('done')
    await first
    expect(await policy.run(sequenced(sender), async ({ sequence }) => sequence.number)).toBe(2)
  })

  it('sends an accepted intent under its own number, however late it is run again', async () => {
    const { clock, policy } = setup({ attempts: 1 })
    const sender = till()
    const guard = sequenced(sender)
    const number = () => policy.run(guard, async ({ sequence }) => sequence.number)
    expect(await number()).toBe(1)
    await policy.run(sequenced(sender), async () => 'another')
    expect(await number()).toBe(1)
    const again = policy.run(guard, async () => {
      throw new Flaky('maybe')
    })
    await expect(settle(clock, again)).rejects.toThrow('flaky')
    expect([sender.last, sender.unsettled]).toEqual([2, undefined])
  })

  it('fills the history that the caller gave, and reads only what this call added', async () => {
    const { clock, policy } = setup({ attempts: 1 })
    const sender = till()
    const history: never[] = []
    const failing = (happened: 'no' | 'maybe') =>
      policy.run(
        sequenced(sender),
        async () => {
          throw new Flaky(happened)
        },
        { history },
      )
    await expect(settle(clock, failing('no'))).rejects.toThrow()
    await expect(settle(clock, failing('no'))).rejects.toThrow()
    expect([history.length, sender.unsettled]).toEqual([2, undefined])
  })

  it('refuses a name or an epoch that cannot be', () => {
    for (const options of [
      { name: '', epoch: 1 },
      { name: 'a b', epoch: 1 },
      { name: 'a', epoch: 0 },
      { name: 'a', epoch: 1, last: 1 },
    ]) {
      expect(() => producer(options as never)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
    }
  })
})
