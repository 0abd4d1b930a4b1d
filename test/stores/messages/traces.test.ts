// Where the messages of an intent are, on every store that keeps messages.

import { describe, expect, it } from 'vitest'
import { derive, type Key, withIntent } from '../../../src/identity/index.js'
import { deadlineAfter } from '../../../src/kernel/index.js'
import { letterWorlds } from './letters-world.js'

const limits = () => ({ deadline: deadlineAfter('60s') })
const intent = (key: string) => derive(key as Key, 'emit')

describe.each(letterWorlds)('messages of an intent on %s', (_name, inWorld) => {
  it('are found by it, with what each reader knows of them', () =>
    inWorld(async ({ db, emit, bad, consumed, relayed }) => {
      bad.add('a2')
      await relayed()
      await consumed()
      await withIntent({ key: 'intent-1' as Key }, () => emit(['a1', 'a'], ['a2', 'a'], ['a3', 'a']))
      await withIntent({ key: 'intent-2' as Key }, () => emit(['b1', 'b']))
      const { messages } = db
      const found = async (...keys: string[]) => {
        const caused = await messages.caused({ intents: keys.map(intent), sinceMs: 0, limit: 100 }, limits())
        return [...new Set(caused.map(({ id }) => id))]
      }
      expect(await found('intent-1')).toEqual(['a1', 'a2', 'a3'])
      expect(await found('intent-2', 'intent-3')).toEqual(['b1'])
      expect(await found('intent-3')).toEqual([])
      const all = await messages.caused({ intents: [intent('intent-1')], sinceMs: 0, limit: 2 }, limits())
      expect(all).toHaveLength(2)
      const far = { intents: [intent('intent-1')], sinceMs: 4e12, limit: 100 }
      expect(await messages.caused(far, limits())).toEqual([])
      const states = async (id: string, number: number) => {
        const [key = ''] = id
        const [any] = await messages.caused({ intents: [intent('intent-1')], sinceMs: 0, limit: 1 }, limits())
        const place = { epoch: any?.place.epoch ?? 0, number }
        const { readers, letters } = await messages.trace({ source: any?.source ?? '', id, key, place }, limits())
        return [
          readers.map(({ reader, state }) => `${reader} ${state}`),
          letters.map(({ reader, state }) => `${reader} ${state}`),
        ]
      }
      await relayed()
      expect(await states('a1', 1)).toEqual([['out done', 'receipts waiting'], []])
      expect(await states('a2', 2)).toEqual([['out parked', 'receipts waiting'], ['out open']])
      await consumed()
      expect(await states('a1', 1)).toEqual([['out done', 'receipts done'], []])
      expect(await states('a2', 2)).toEqual([
        ['out parked', 'receipts parked'],
        ['out open', 'receipts open'],
      ])
      expect(await states('a3', 3)).toEqual([['out parked', 'receipts parked'], []])
    }))
})
