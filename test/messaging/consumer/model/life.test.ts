// The real consumer under random lives, and the same with bugs planted.

import { describe, expect, it } from 'vitest'
import { Life, type Setting } from './life.js'
import { plantedBugs } from './planted-bugs.js'

// The same lives in every run; others by REPRISE_LIVES.
const seed = Number(process.env['REPRISE_LIVES'] ?? 1) % 1_000_000
const settings: readonly Setting[] = [
  { from: 'source', order: 'key' },
  { from: 'source', order: 'gapless' },
  { from: 'outbox', order: 'key' },
]
const lives = 12

describe('every message has its effect once and in order', () => {
  it.each(settings)('$from, $order', async (setting) => {
    let told = 0
    for (let life = 0; life < lives; life += 1) {
      const lived = new Life(seed + life, setting)
      expect(await lived.live(), `seed ${seed + life}: ${lived.story.join('; ')}`).toBeUndefined()
      told += lived.story.length
    }
    // Processes did die and freeze.
    expect(told).toBeGreaterThan(lives)
  })
})

describe('is found:', () => {
  it.each(plantedBugs.map((bug) => [bug.name, bug] as const))('%s', async (_name, bug) => {
    for (let life = 0; life < 200; life += 1) {
      const wrong = await new Life(seed + life, bug.setting, bug).live()
      if (wrong === undefined) continue
      expect(wrong).toMatch(bug.noticed)
      return
    }
    expect.unreachable('The bug was not found.')
  })
})
