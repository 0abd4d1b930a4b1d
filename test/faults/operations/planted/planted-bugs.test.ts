// These tests notice bugs: each bug is planted and the checker reports what it did. Without the bug, the same run is
// correct.

import { describe, expect, it } from 'vitest'
import { keepTable } from '../fault-table.js'
import { BugWorld } from './bug-world.js'
import { plantedBugs } from './bugs.js'

describe('the checker finds:', () => {
  it.each(plantedBugs)('$name', async ({ story, shows }) => {
    const [sound, broken] = [new BugWorld(), new BugWorld()]
    await story(sound, false)
    expect(sound.findings()).toEqual([])
    expect(sound.verdicts.length).toBeGreaterThan(0)
    expect(sound.effects).toHaveLength(1)
    await story(broken, true)
    expect(broken.findings().map(({ kind }) => kind)).toContain(shows)
  })

  it('at least ten of them, and says so in the documentation', () => {
    expect(plantedBugs.length).toBeGreaterThanOrEqual(10)
    keepTable(
      'planted',
      ['planted bug', 'the checker finds'],
      plantedBugs.map(({ name, shows }) => [name, shows]),
    )
  })
})
