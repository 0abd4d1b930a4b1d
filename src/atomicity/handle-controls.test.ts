import { expect, it } from 'vitest'
import { HandleControls, type TransactionControls } from './index.js'

it('hands on what the runner gave, and asks for the signal only when the body does', () => {
  const controller = new AbortController()
  const hooks: unknown[] = []
  let asked = 0
  const given: TransactionControls = {
    attempt: 3,
    deadline: { expiresAtMs: 5 },
    get signal() {
      asked += 1
      return controller.signal
    },
    afterCommit: (work) => void hooks.push(work),
  }
  const handle = new (class extends HandleControls {})(given)
  const work = (): void => undefined
  handle.afterCommit(work)
  expect([handle.attempt, handle.deadline, hooks, asked]).toEqual([3, { expiresAtMs: 5 }, [work], 0])
  expect(handle.signal).toBe(controller.signal)
  expect(asked).toBe(1)
})
