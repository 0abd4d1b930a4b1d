import { expect, it } from 'vitest'
import { eventLoopTurn } from '../../../kernel/index.js'
import { manualClock } from '../../../testing/index.js'
import { LoopTurns } from './loop-turns.js'

it('asks for a turn of the event loop after 10 ms without one, and not before', async () => {
  const clock = manualClock()
  const turns = new LoopTurns(clock)
  expect(turns.due()).toBeUndefined()
  await clock.advance(9)
  expect(turns.due()).toBeUndefined()
  await eventLoopTurn()
  // It has turned, and counts anew.
  expect(turns.due()).toBeUndefined()
})

it('counts from the first work since the last turn', () => {
  let nowMs = 0
  const clock = { ...manualClock(), monotonicMs: () => nowMs }
  const turns = new LoopTurns(clock)
  expect(turns.due()).toBeUndefined()
  nowMs = 9
  expect(turns.due()).toBeUndefined()
  nowMs = 10
  expect(turns.due()).toBeInstanceOf(Promise)
})
