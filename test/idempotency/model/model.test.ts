// Many short histories of one key, against the real machine: whatever is lost, late, dead or wrong about the time, what
// must hold does.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../property.js'
import { commandLimit, holds } from './sequence.js'
import type { Tally } from './world.js'

const commands = fc.array(fc.noBias(fc.nat(commandLimit - 1)), { minLength: 20, maxLength: 60, size: 'max' })

/** What must have happened in the sequences together, or they show nothing. */
const interesting: readonly (readonly [what: string, pattern: RegExp])[] = [
  ['claims and outcomes written, and the answer lost', /^(claim|complete|release|lose) written, answer lost$/],
  ['claims and outcomes not written, and the answer lost', /^(claim|complete|release|lose) not written, answer lost$/],
  ['late writes that arrived in time', /^late write accepted$/],
  ['late writes that came too late', /^late \w+ refused$/],
  ['crashes between any two steps', /^crash at /],
  ['pauses longer than a lease', /^pause longer than a lease$/],
  ['zombies that did not send', /^not sent: the lease is not fresh$/],
  ['repeats that did not send past the receiver’s window', /^not sent: the receiver may have forgotten$/],
  ['takeovers to run again', /^takeover to run again$/],
  ['takeovers to ask', /^takeover to ask$/],
  ['own claims recognised after a lost answer', /^own claim recognised, to run$/],
  ['own takeovers recognised, to ask', /^own claim recognised, to ask$/],
  ['own takeovers recognised, to run again', /^own claim recognised, to rerun$/],
  ['own outcomes recognised after a lost answer', /^own outcome recognised$/],
  ['stale completions refused', /^stale complete refused$/],
  ['stale releases refused', /^stale release refused$/],
  ['stale renewals refused', /^stale renewal refused$/],
  ['stale losses refused', /^stale lose refused$/],
  ['races for a record that were lost', /^lost a race for the record$/],
  ['releases that an earlier claim forbade', /^released, but an earlier claim may have sent$/],
  ['effects that arrived, and the answer did not', /^maybe, and it arrived$/],
  ['effects that did not arrive, and nobody knew', /^maybe, and it did not arrive$/],
  ['replays', /^replay$/],
  ['refusals of a key in flight', /^refused: in-flight$/],
  ['refusals of what is unknown', /^refused: unknown$/],
  ['refusals of other content', /^refused: mismatch$/],
  ['refusals of another mode', /^refused: mode$/],
  ['keys used anew after their window', /^key used anew$/],
  ['keys used anew in another mode', /^key used anew in another mode$/],
  ['records purged', /^record purged$/],
  ['records taken as due', /^taken as due$/],
  ['looks of a sweep that came to an end', /^look ended: (completed|released|lost|unknown)$/],
  ['settlements', /^settled$/],
  ['settlements refused', /^settlement refused$/],
  ['settlements overtaken by a claim', /^settlement overtaken$/],
  ['jumps of owners’ clocks', /^jump of an owner’s clock$/],
]

function report(title: string, tally: Tally, more: readonly (readonly [string, RegExp])[]): void {
  const rows = [...interesting, ...more].map(([what, pattern]) => {
    const times = [...tally].filter(([name]) => pattern.test(name)).reduce((sum, [, count]) => sum + count, 0)
    return { what, times }
  })
  const lines = rows.map(({ what, times }) => `${String(times).padStart(9)}  ${what}`)
  console.log([`${tally.get('sequence') ?? 0} sequences, ${title}`, ...lines].join('\n'))
  expect(rows.filter(({ times }) => times < 20)).toEqual([])
}

describe('with a store’s clock that only goes forward, at most the margin ahead', () => {
  const tally: Tally = new Map()
  property(
    'one completion, one effect, no lost success, nothing stale accepted, fences grow, and somebody can always go on',
    [commands],
    (sequence) => holds(sequence, { tally }),
    { cases: 100_000 },
  )

  it('everything interesting happened', () => {
    report('the store’s clock goes forward', tally, [['skews of the store’s clock', /^skew of the store’s clock$/]])
  })
})

// What a lease and a receiver's window promise cannot hold then: they are times. All that hangs on token, fence and
// version does.
describe('with a store’s clock that jumps, backwards too', () => {
  const tally: Tally = new Map()
  property(
    'one completion, no outcome lost before its window ends by that clock, nothing stale accepted, fences grow, and somebody can always go on',
    [commands],
    (sequence) => holds(sequence, { tally, clockIsSound: false }),
    { cases: 30_000 },
  )

  it('everything interesting happened', () => {
    report('the store’s clock jumps', tally, [['jumps of the store’s clock', /^jump of the store’s clock$/]])
  })
})
