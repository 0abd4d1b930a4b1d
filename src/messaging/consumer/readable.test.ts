import { describe, expect, it } from 'vitest'
import { messageOf } from '../../../test/messaging/consumer/scripted-source.js'
import type { SchemaResult } from '../../kernel/index.js'
import { memory } from '../../stores/memory/index.js'
import { fitted, isMessage, readStored, storable } from './readable.js'

const { messages } = memory({ name: 'shop' })
const place = { epoch: 1, number: 1 }

describe('a message that was stored', () => {
  it('is read as it arrived, with its data or with why it has none', () => {
    for (const message of [
      messageOf('1', 'a', { place }),
      messageOf('2', 'a', { place, data: undefined, discarded: 'not wanted' }),
    ]) {
      const { data: _, ...envelope } = message
      const read = readStored(messages, { ...envelope, place, ...storable(messages, message) })
      expect(read).toEqual(message)
    }
  })

  it('says that its data was erased, or that its codec is not known', () => {
    const { data: _, ...envelope } = messageOf('1', 'a')
    const stored = { ...envelope, place, codec: 'nobody', data: 'x' }
    expect(readStored({ dataOf: () => undefined }, stored)).toMatchObject({ discarded: 'erased', data: undefined })
    const unknown = readStored(messages, stored)
    expect(isMessage(unknown)).toBe(false)
    expect(unknown).toMatchObject({ is: 'dead', code: 'MESSAGE_UNREADABLE' })
  })
})

describe('a schema', () => {
  const schema = (validate: (value: unknown) => SchemaResult) => ({
    'order.placed': { '~standard': { version: 1 as const, vendor: 'test', validate } },
  })

  it('lets data pass, changes it, or says what is wrong, and one that throws fits nothing', async () => {
    const message = messageOf('1', 'a')
    expect(
      await fitted(
        message,
        schema((value) => ({ value })),
      ),
    ).toEqual(message)
    expect(
      await fitted(
        message,
        schema(() => ({ value: 7 })),
      ),
    ).toEqual({ ...message, data: 7 })
    expect(
      await fitted(
        message,
        schema(() => ({ issues: [{ message: 'no amount' }] })),
      ),
    ).toMatchObject({
      is: 'dead',
      code: 'MESSAGE_INVALID',
      reason: expect.stringContaining('no amount'),
    })
    const throwing = schema(() => {
      throw new Error('broken')
    })
    expect(await fitted(message, throwing)).toMatchObject({ is: 'dead', reason: expect.stringContaining('broken') })
  })

  it('is not asked about other types, nor about what has no data', async () => {
    const asked = schema(() => ({ issues: [] }))
    const other = messageOf('1', 'a', { type: 'toString' })
    const gone = messageOf('1', 'a', { data: undefined, discarded: 'x' })
    expect(await fitted(other, asked)).toBe(other)
    expect(await fitted(gone, asked)).toBe(gone)
  })
})
