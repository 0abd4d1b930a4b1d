import fc from 'fast-check'
import { expect, it } from 'vitest'
import { property } from '../../test/property.js'
import type { StoredKey } from '../identity/index.js'
import { systemClock } from '../kernel/index.js'
import {
  checkedCodecs,
  checkRegistered,
  decodeOutcome as decode,
  type Ending,
  encodeOutcome,
  fail,
  type OutcomeStorage,
  type ValueCodec,
} from './outcome.js'

const context = { id: 'record' as StoredKey, operation: 'pay' }
const values = (codec?: unknown, largestBytes = 1_000_000): OutcomeStorage => {
  const rest = { largestBytes, failures: new Set(['declined']), rememberedMs: 1_000 }
  return { ...checkedCodecs(codec, []), ...rest }
}
const limits = { deadline: { expiresAtMs: systemClock.monotonicMs() + 60_000 }, clock: systemClock }
const decodeOutcome = (
  storage: OutcomeStorage,
  stored: Pick<Ending, 'state' | 'codec' | 'value'>,
  given: typeof context,
) => decode(storage, { ...stored, own: false }, given, limits)

property(
  'results and failures come back by the text alone',
  [fc.jsonValue(), fc.boolean()],
  async (data, failed) => {
    const plain: unknown = JSON.parse(JSON.stringify(data))
    const { whole, ...stored } = await encodeOutcome(values(), failed ? fail('declined', data) : data, context)
    expect(whole).toBeUndefined()
    expect(await decodeOutcome(values(), stored, context)).toEqual(
      failed
        ? { outcome: 'failed', failure: expect.objectContaining({ code: 'declined', data: plain }), replayed: true }
        : { outcome: 'succeeded', value: plain, replayed: true },
    )
  },
  { cases: 1_000 },
)

it('hands a codec the names of record and operation, both ways', async () => {
  const seen: unknown[] = []
  const codec: ValueCodec<string> = {
    name: 'seen-1',
    encode: (value, given) => `${seen.push(given)}${value}`,
    decode: async (text, given) => `${seen.push(given)}${text}`,
  }
  const stored = await encodeOutcome(values(codec), 'x', context)
  expect(stored).toMatchObject({ state: 'succeeded', codec: 'seen-1', value: '1x', rememberedMs: 1_000, own: true })
  expect(await decodeOutcome(values(codec), stored, context)).toEqual({
    outcome: 'succeeded',
    value: '21x',
    replayed: true,
  })
  expect(seen).toEqual([context, context])
})

it('refuses what a codec makes that is no text, at once or later', async () => {
  for (const encode of [() => 7, async () => 7]) {
    const encoding = async () => encodeOutcome(values({ name: 'odd-1', encode, decode: () => 7 }), 'x', context)
    await expect(encoding()).rejects.toMatchObject({ code: 'OPERATION_INVALID' })
  }
})

it('waits for a codec only where it has to', async () => {
  const text = { name: 'upper-1', encode: String, decode: (stored: string) => stored.toUpperCase() }
  const stored = encodeOutcome(values(text), 'x', context)
  expect(stored).toMatchObject({ state: 'succeeded', codec: 'upper-1', value: 'x' })
  expect(decodeOutcome(values(text), stored as never, context)).toEqual({
    outcome: 'succeeded',
    value: 'X',
    replayed: true,
  })
  for (const decode of [
    () => {
      throw new Error('no key')
    },
    () => Promise.reject(new Error('no key')),
  ]) {
    const decoding = async () => decodeOutcome(values({ ...text, decode }), stored as never, context)
    await expect(decoding()).rejects.toMatchObject({ code: 'OUTCOME_UNREADABLE', cause: { message: 'no key' } })
  }
})

it.each([
  ['an unknown codec', { state: 'succeeded', codec: 'of-tomorrow', value: '1' }],
  ['no value', { state: 'succeeded', codec: undefined, value: undefined }],
  ['no JSON', { state: 'succeeded', codec: undefined, value: '{' }],
  ['a failure without a code', { state: 'failed', codec: undefined, value: '{}' }],
  ['a failure that is none', { state: 'failed', codec: undefined, value: '' }],
] as const)('cannot read a record with %s', async (_title, stored) => {
  const decoding = async () => decodeOutcome(values(), stored, context)
  await expect(decoding()).rejects.toMatchObject({ code: 'OUTCOME_UNREADABLE' })
})

it('refuses failures that are not registered', () => {
  const cause = new Error('bank')
  expect(() => checkRegistered(values(), fail('other'), cause)).toThrow(
    expect.objectContaining({ code: 'FAILURE_UNREGISTERED', cause }),
  )
  checkRegistered(values(), fail('declined'))
})
