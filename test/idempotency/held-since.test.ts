import { expect, it } from 'vitest'
import { type Key, mintKey, scope } from '../../src/identity/index.js'
import { memory } from '../../src/stores/memory/index.js'
import { manualClock } from '../../src/testing/index.js'

function hotKey(more: { readonly duplicates?: 'refuse'; readonly waiters?: number }) {
  const clock = manualClock()
  const db = memory({ name: 'shop', clock })
  let begin = (): void => undefined
  let end = (_result: number): void => undefined
  const begun = new Promise<void>((resolve) => (begin = resolve))
  const work = new Promise<number>((resolve) => (end = resolve))
  const run = async () => {
    begin()
    return work
  }
  const identity = { scope: () => scope('north'), key: (key: Key) => key, window: '24h' } as const
  return { clock, begun, end, pay: db.operation('pay', { ...identity, ...more, run }) }
}

it('the refusal of a hot key says since when its holder works', async () => {
  const { clock, pay, begun, end } = hotKey({ duplicates: 'refuse' })
  const key = mintKey()
  const startedAtMs = clock.wallMs()
  const first = pay(key)
  await begun
  await clock.advance(700)
  const refused = { code: 'OPERATION_IN_FLIGHT', details: { heldSinceMs: startedAtMs } }
  await expect(pay(key)).rejects.toMatchObject(refused)
  end(1)
  await first
})

it('so does the refusal of one duplicate too many', async () => {
  const { clock, pay, begun, end } = hotKey({ waiters: 1 })
  const key = mintKey()
  const startedAtMs = clock.wallMs()
  const first = pay(key)
  await begun
  await clock.advance(700)
  const second = pay(key)
  const refused = { code: 'QUEUE_FULL', details: { waiters: 1, heldSinceMs: startedAtMs } }
  await expect(pay(key)).rejects.toMatchObject(refused)
  end(1)
  expect(await Promise.all([first, second])).toEqual([1, 1])
})
