// The model notices bugs: each of these is planted, found, and told as the shortest story that shows it.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { plantedBugs, withBug } from './planted-bugs.js'
import { commandLimit, runSequence, storyOf } from './sequence.js'

const seed = Number(process.env['REPRISE_SEED'])
const commands = fc.array(fc.noBias(fc.nat(commandLimit - 1)), { minLength: 1, maxLength: 60, size: 'max' })

describe('is found by the model:', () => {
  it.each(plantedBugs.map((bug) => [bug.name, bug] as const))('%s', (name, bug) => {
    const { setting = {} } = bug
    const options = { subject: withBug(bug), setting }
    const whole = fc.property(commands, (sequence) => runSequence(sequence, options))
    const { failed, numRuns, counterexample } = fc.check(whole, { numRuns: 300_000, seed })
    expect(failed, 'the bug was not found').toBe(true)
    const [sequence = []] = counterexample ?? []
    const story = storyOf(sequence, options)
    console.log([`${name}: found by sequence ${numRuns}`, ...story].join('\n    '))
    expect(story.at(-1)).toMatch(bug.noticed)
    // It is the bug, and not the sequence: the real machine holds in it.
    expect(storyOf(sequence, { setting }).at(-1)).not.toMatch(bug.noticed)
  })
})
