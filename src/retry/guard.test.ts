import { describe, expect, expectTypeOf, it } from 'vitest'
import { type Key, mintKey, parseKey } from '../identity/index.js'
import { atomic, type Guard, keyed, readOnly, repeatable } from './guard.js'
import type { Attempt } from './options.js'
import { retry, retryPolicy } from './policy.js'
import { conditional } from './run/conditional.js'
import { sequenced } from './sequenced/numbered.js'

describe('guards', () => {
  it('stand on their rungs, and hand on their keys', () => {
    const key = mintKey()
    expect(readOnly()).toMatchObject({ rung: 'read', key: undefined })
    expect(repeatable('sets the status to paid')).toMatchObject({ rung: 'algebra' })
    expect(conditional()).toMatchObject({ rung: 'conditional' })
    expect(sequenced({ producer: 'relay-1', epoch: 1, number: 7 })).toMatchObject({ rung: 'sequence' })
    expect(keyed(key)).toMatchObject({ rung: 'key', key })
    expect(atomic('payments', key)).toMatchObject({ rung: 'atomic', key })
  })

  it('refuse to be made of nothing', () => {
    for (const make of [
      () => repeatable(''),
      () => repeatable(undefined as never),
      () => atomic(''),
      () => sequenced({ producer: '', epoch: 0, number: 0 }),
      () => sequenced({ producer: 'a', epoch: -1, number: 0 }),
      () => sequenced({ producer: 'a', epoch: 0, number: 0.5 }),
    ]) {
      expect(make).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
    }
    expect(() => keyed('' as never)).toThrow(expect.objectContaining({ code: 'KEY_EMPTY' }))
    expect(() => keyed('two words' as never)).toThrow(expect.objectContaining({ code: 'KEY_CHARACTER' }))
  })
})

// Compiled by `npm run check`.
describe('the key of an attempt', () => {
  it('is there under a guard that has one, also to the types', async () => {
    const policy = retryPolicy()
    const key = mintKey()
    const sent = await policy.run(keyed(key), (attempt) => {
      expectTypeOf(attempt.key).toEqualTypeOf<Key>()
      return attempt.key.length
    })
    expect(sent).toBe(key.length)
    await policy.run(atomic('shop', key), (attempt) => expectTypeOf(attempt.key).toEqualTypeOf<Key>())
    await retry(keyed(key), (attempt) => expectTypeOf(attempt.key).toEqualTypeOf<Key>())
    await policy.run(readOnly(), (attempt) => expectTypeOf(attempt.key).toEqualTypeOf<Key | undefined>())
    await policy.once((attempt) => expectTypeOf(attempt.key).toEqualTypeOf<undefined>())
    const any: Guard = keyed(key)
    expectTypeOf(policy.run(any, async (attempt: Attempt) => attempt.key)).resolves.toEqualTypeOf<Key | undefined>()
    expectTypeOf(policy.run<number>(any, () => 1)).resolves.toBeNumber()
  })
})

// Compiled by `npm run check`: an expected error that is none fails there.
describe('there is no way to ask for repeats without a guard', () => {
  const policy = retryPolicy()
  const body = async () => 1

  it('other than once(), which repeats only what did not happen', async () => {
    const refused = expect.objectContaining({ code: 'ARGUMENT_INVALID' })
    expectTypeOf(policy.once(body)).resolves.toBeNumber()
    expectTypeOf(policy.run(readOnly(), body)).resolves.toBeNumber()
    // @ts-expect-error a function alone is not guarded
    await expect(policy.run(body)).rejects.toEqual(refused)
    // @ts-expect-error an object of the same shape is no guard
    const lookalike: Guard = { rung: 'key', key: parseKey('k') }
    await expect(policy.run(lookalike, body)).rejects.toEqual(refused)
    // @ts-expect-error a key alone is no guard: the receiver must be known to honour it
    await expect(policy.run(parseKey('k'), body)).rejects.toEqual(refused)
    // @ts-expect-error text is no key
    expect(keyed('order-4711').key).toBe('order-4711')
    // @ts-expect-error once() takes no guard
    expect(() => policy.once(readOnly(), body)).toBeTypeOf('function')
    // @ts-expect-error the one-line form wants a guard, too
    await expect(retry(body)).rejects.toEqual(refused)
  })

  it('and the body is told its key', () => {
    void policy.run(keyed(mintKey()), ({ key, number, signal }) => {
      expectTypeOf(number).toBeNumber()
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
      expectTypeOf(key).not.toBeAny()
      return 1
    })
  })
})
