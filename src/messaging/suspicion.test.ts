import { describe, expect, it } from 'vitest'
import { notesIn, withNote } from './consumer/attempt-history.js'
import type { ClaimedLane } from './lanes.js'
import { begunAlone, howToRun, killing, sortedLanes, suspected } from './suspicion.js'

const rules = { crashes: 2 }

const lane = (key: string, claims: number, history = ''): ClaimedLane => ({
  key,
  attempt: 1,
  claims,
  failures: 0,
  history,
  done: undefined,
  messages: [],
  decision: undefined,
})

describe('a message that a process had when it ended', () => {
  it('runs alone, however often that was', () => {
    const claims = [1, 2, 3, 99]
    expect(claims.map((times) => howToRun(lane('a', times), rules))).toEqual(['beside', 'alone', 'alone', 'alone'])
    expect(howToRun(lane('a', 1, suspected('', 1)), rules)).toBe('alone')
    expect(suspected(suspected('', 1), 2)).toBe(suspected('', 1))
  })

  it('is dead after so many that ran nothing else', () => {
    const once = begunAlone(suspected('', 1), 2)
    const twice = begunAlone(once, 3)
    expect(howToRun(lane('a', 2, once), rules)).toBe('alone')
    expect(howToRun(lane('a', 1, twice), rules)).toBe('kills')
    expect(notesIn(twice).map(({ what, times }) => [what, times])).toEqual([
      ['suspected', undefined],
      ['alone', 2],
    ])
    expect(killing({ history: twice })).toMatchObject({ code: 'MESSAGE_KILLS', reason: expect.stringMatching(/^2 /) })
  })

  it('is still known for it after many failures', () => {
    let history = begunAlone(suspected('', 1), 1)
    for (let atMs = 0; atMs < 50; atMs += 1)
      history = withNote(history, { atMs, what: 'failed', code: 'c', reason: '' })
    expect(howToRun(lane('a', 1, history), { crashes: 1 })).toBe('kills')
    expect(howToRun(lane('a', 1, history), rules)).toBe('alone')
  })
})

describe('the lanes of a claim', () => {
  it('are all kept where none is suspected', () => {
    const lanes = [lane('a', 1), lane('b', 1)]
    expect(sortedLanes(lanes, rules, 1)).toEqual({ kept: lanes, released: [], alone: undefined })
  })

  it('are given back beside one that runs alone, but not what kills; each keeps the suspicion against it', () => {
    const dead = lane('d', 1, begunAlone(begunAlone('', 1), 1))
    const { kept, released, alone } = sortedLanes([lane('a', 1), lane('b', 2), lane('c', 2), dead], rules, 7)
    expect(kept.map(({ key }) => key)).toEqual(['b', 'd'])
    expect(alone?.key).toBe('b')
    expect(released.map(({ key, history }) => [key, history])).toEqual([
      ['a', ''],
      ['c', suspected('', 7)],
    ])
    expect(alone?.history).toBe(suspected('', 7))
  })
})
