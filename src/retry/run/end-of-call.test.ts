import { describe, expect, it } from 'vitest'
import { Flaky, settle, setup } from '../../../test/retry/virtual-policy.js'
import { readOnly } from '../guard.js'
import { historyOf } from '../history.js'

describe('an error that nobody classified', () => {
  it('comes back as it is under a guard, and its history says how to classify it', async () => {
    const { policy } = setup()
    const thrown = new Error('E1234')
    await expect(policy.run(readOnly(), () => Promise.reject(thrown))).rejects.toBe(thrown)
    expect(historyOf(thrown)).toMatchObject({ stop: 'permanent', hint: expect.stringContaining('`classify`') })
    const known = Object.assign(new Error('no'), { status: 404 })
    await expect(policy.run(readOnly(), () => Promise.reject(known))).rejects.toBe(known)
    expect(historyOf(known)).not.toHaveProperty('hint')
  })

  it('has the same history where it is the cause of an unknown outcome, and the message says it too', async () => {
    const { policy } = setup()
    const thrown = new Error('E1234')
    const unknown = await policy.once(() => Promise.reject(thrown)).catch((error: unknown) => error as Error)
    expect(unknown).toMatchObject({ code: 'UNKNOWN_OUTCOME', cause: thrown })
    expect(historyOf(thrown)).toEqual(historyOf(unknown))
    expect((unknown as Error).message).toContain(historyOf(unknown)?.hint)
  })
})

describe('the error of attempts that disagree', () => {
  const run = async (guarded: boolean, ...errors: Error[]) => {
    const { policy, clock } = setup({ attempts: errors.length })
    let call = 0
    const body = () => Promise.reject(errors[call++])
    const thrown = await settle(clock, guarded ? policy.run(readOnly(), body) : policy.once(body)).catch(
      (e: unknown) => e,
    )
    expect(call).toBe(errors.length)
    return errors.indexOf(thrown as Error)
  }

  it('is the latest that may have had an effect', async () => {
    expect(await run(true, new Flaky('maybe'), new Flaky('maybe'), new Flaky('no'))).toBe(1)
    expect(await run(true, new Flaky('maybe'), new Flaky('no'), new Flaky('no'))).toBe(0)
    expect(await run(true, new Flaky('no'), new Flaky('maybe'))).toBe(1)
  })

  it.each([true, false])('is the last one where none may have had an effect; guarded: %s', async (guarded) => {
    expect(await run(guarded, new Flaky('no'), new Flaky('no'), new Flaky('no'))).toBe(2)
    const definite = Object.assign(new Error('not found'), { status: 404 })
    expect(await run(guarded, new Flaky('no'), definite)).toBe(1)
  })
})
