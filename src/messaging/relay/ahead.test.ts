import { describe, expect, it } from 'vitest'
import { deadlineAfter, seededRandom } from '../../kernel/index.js'
import { memory } from '../../stores/memory/index.js'
import { manualClock } from '../../testing/index.js'
import type { ClaimedLane, Published, Publisher } from '../index.js'
import { ClaimAhead, type ClaimedBatch, isMoreDue } from './ahead.js'
import { relay } from './relay.js'

const lane = (key: string): ClaimedLane =>
  ({ key, attempt: 1, claims: 1, failures: 0, history: '', messages: [] }) as unknown as ClaimedLane
const batch = (keys: readonly string[], nextDueMs: number | undefined): ClaimedBatch => ({
  lanes: keys.map(lane),
  nextDueMs,
  sinceMs: 0,
  shape: { lanes: 2, perLane: 1, keepsFor: 0 },
})

it('is worth it where as many were found as were wanted, and another one is due now', () => {
  expect(isMoreDue(batch(['a', 'b'], 0))).toBe(true)
  expect(isMoreDue(batch(['a'], 0))).toBe(false)
  expect(isMoreDue(batch(['a', 'b'], 5))).toBe(false)
  expect(isMoreDue(batch(['a', 'b'], undefined))).toBe(false)
})

it('is taken once, with its error, or given back lane by lane; what failed is not given back', async () => {
  const released: string[] = []
  const ahead = new ClaimAhead({ release: ({ key }) => void released.push(key) })
  expect(await ahead.take()).toBeUndefined()
  ahead.begin(async () => batch(['a', 'b'], 0))
  expect(ahead.isThere).toBe(true)
  expect((await ahead.take())?.lanes).toHaveLength(2)
  expect(ahead.isThere).toBe(false)
  ahead.begin(() => Promise.reject(new Error('away')))
  await expect(ahead.take()).rejects.toThrow('away')
  ahead.begin(() => Promise.reject(new Error('away')))
  await ahead.giveBack()
  expect(released).toEqual([])
  ahead.begin(async () => batch(['a', 'b'], 0))
  await ahead.giveBack()
  expect(released).toEqual(['a', 'b'])
})

const manifest: Publisher['manifest'] = {
  broker: 'test',
  order: 'key',
  confirm: 'memory',
  delay: false,
  deliveryCount: 'none',
  dedupeMs: 0,
  redeliveryMs: undefined,
  because: {},
}

// A relay of batches of two messages, over six keys of one message each.
async function world(
  answer: (call: number) => Promise<Published> | Published,
  endsFail: { left: number } = { left: 0 },
) {
  const clock = manualClock()
  const db = memory({ name: 'shop', clock })
  const steps: string[] = []
  const { claim, end, extend } = db.messages
  const watched = {
    ...db.messages,
    claim: async (...given: Parameters<typeof claim>) => {
      const claimed = await claim(...given)
      steps.push(`claimed ${claimed.lanes.map(({ key }) => key).join('')}`)
      return claimed
    },
    end: async (...given: Parameters<typeof end>) => {
      const keys = given[0].map(({ key, then }) => `${key}${then.is === 'rest' ? '!' : ''}`).join('')
      if (endsFail.left > 0) throw new Error(`not ended ${keys}`)
      steps.push(`ended ${keys}`)
      return end(...given)
    },
    // By this it is asked whether the store answers at all.
    extend: async (...given: Parameters<typeof extend>) => {
      endsFail.left -= 1
      if (endsFail.left >= 0) throw new Error('away')
      return extend(...given)
    },
  }
  const to: Publisher = {
    manifest,
    publish: async (messages) => {
      const call = steps.filter((step) => step.startsWith('publish')).length
      steps.push(`publish ${messages.map(({ key }) => key).join('')}`)
      const said = await answer(call)
      steps.push(`answered ${said.is}`)
      return messages.map(() => said)
    },
  }
  const stop = new AbortController()
  const out = relay({ ...db, messages: watched } as typeof db, { name: 'out', to, batch: 2, random: seededRandom(1) })
  await db.transact((tx) => tx.emit([...'abcdef'].map((key) => ({ type: 't', key, data: 1 }))))
  const due = async (): Promise<string> => {
    const reader = { name: 'out', kind: 'relay', reads: 'outbox' } as const
    const query = { reader, owner: 'other', leaseMs: 1_000, lanes: 10, perLane: 1 }
    return (await db.messages.claim(query, { deadline: deadlineAfter('1m', clock) })).lanes
      .map(({ key }) => key)
      .join('')
  }
  return { out, steps, stop, due }
}

const confirmed: Published = { is: 'confirmed' }

describe('a relay with more due than one claim has', () => {
  it('claims what comes next while it publishes, and writes the ends beside the next messages', async () => {
    const { out, steps } = await world(() => confirmed)
    expect(await out.drain()).toMatchObject({ published: 6, fenced: 0 })
    const at = (step: string): number => steps.indexOf(step)
    expect(at('claimed cd')).toBeGreaterThan(-1)
    expect(at('claimed cd')).toBeLessThan(at('ended ab'))
    expect(at('claimed ef')).toBeLessThan(at('ended cd'))
    // Never before they were published.
    expect(at('publish ab')).toBeLessThan(at('ended ab'))
    expect(steps.filter((step) => step.startsWith('ended'))).toEqual(['ended ab', 'ended cd', 'ended ef'])
  })

  it('writes with the next ends those that the store could not take beside the next messages', async () => {
    const { out, steps } = await world(() => confirmed, { left: 1 })
    expect(await out.drain()).toMatchObject({ published: 6, fenced: 0 })
    expect(steps.filter((step) => step.startsWith('publish'))).toEqual(['publish ab', 'publish cd', 'publish ef'])
    expect(steps.filter((step) => step.startsWith('ended'))).toEqual(['ended abcd', 'ended ef'])
  })

  it('gives back at once what it claimed ahead where the broker is away', async () => {
    const { out, steps, due } = await world(() => ({ is: 'unsent', error: new Error('away') }))
    expect(await out.drain()).toMatchObject({ published: 0, pauses: 1 })
    expect(steps).toContain('claimed cd')
    expect(steps.filter((step) => step.startsWith('publish'))).toEqual(['publish ab'])
    // What went out in vain rests; the rest is for anybody.
    expect(await due()).toBe('cdef')
  })

  it('gives back at once what it claimed ahead when it is stopped', async () => {
    const { out, steps, stop, due } = await world(() => {
      stop.abort()
      return confirmed
    })
    expect(await out.drain({ signal: stop.signal })).toMatchObject({ published: 2 })
    expect(steps).toContain('claimed cd')
    expect(steps.filter((step) => step.startsWith('ended'))).toEqual(['ended ab', 'ended c!d!'])
    expect(await due()).toBe('cdef')
  })
})
