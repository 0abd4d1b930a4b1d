import { expect, it } from 'vitest'
import { type Key, mintKey, scope } from '../../src/identity/index.js'
import { memory } from '../../src/stores/memory/index.js'
import { manualClock } from '../../src/testing/index.js'

it('the refusal of a hot key says since when its holder works', async () => {
  const clock = manualClock()
  const db = memory({ name: 'shop', clock })
  let begin = (): void => undefined
  let end = (_result: number): void => undefined
  const begun = new Promise<void>((resolve) => (begin = resolve))
  const work = new Promise<number>((resolve) => (end = resolve))
  const pay = db.operation('pay', {
    scope: () => scope('north'),
    key: (key: Key) => key,
    window: '24h',
    duplicates: 'refuse',
    run: async () => {
      begin()
      return work
    },
  })
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
