import { expect, it } from 'vitest'
import { type Emission, handleLife, type Rows, type TransactionControls, TransactionHandle } from './index.js'

const emits = { emit: () => expect.unreachable('nothing was emitted') }

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
  const handle = new TransactionHandle(given, handleLife(), () => expect.unreachable('no rows were asked for'), emits)
  const work = (): void => undefined
  handle.afterCommit(work)
  expect([handle.attempt, handle.deadline, hooks, asked]).toEqual([3, { expiresAtMs: 5 }, [work], 0])
  expect(handle.signal).toBe(controller.signal)
  expect(asked).toBe(1)
})

const controls = {
  attempt: 1,
  signal: new AbortController().signal,
  deadline: { expiresAtMs: 1 },
  afterCommit: () => undefined,
}

it('makes its rows when the first is asked for, once, and hands every call on', async () => {
  const calls: unknown[] = []
  const noted =
    (name: string) =>
    async (...values: unknown[]) =>
      void calls.push([name, ...values])
  const names = ['insertOnce', 'transition', 'lockRow', 'readRow', 'updateRows'] as const
  let made = 0
  const handle = new TransactionHandle(
    controls,
    handleLife(),
    () => {
      made += 1
      return Object.fromEntries(names.map((name) => [name, noted(name)])) as unknown as Rows
    },
    emits,
  )
  expect(made).toBe(0)
  for (const name of names) await (handle[name] as (...values: unknown[]) => Promise<unknown>)('item', { id: 1 }, name)
  expect(made).toBe(1)
  expect(calls).toEqual(names.map((name) => [name, 'item', { id: 1 }, name]))
})

it('lets the transaction wait for a call that the body did not wait for', async () => {
  const life = handleLife()
  let answer = (): void => undefined
  const readRow = () => new Promise<undefined>((resolve) => (answer = () => resolve(undefined)))
  const handle = new TransactionHandle(controls, life, () => ({ readRow }) as unknown as Rows, emits)
  void handle.readRow('item', { id: 1 })
  const settled = life.settle()
  expect(settled).toBeInstanceOf(Promise)
  answer()
  await settled
  await expect(handle.readRow('item', { id: 1 })).rejects.toMatchObject({ code: 'TRANSACTION_OVER' })
})

it('knows the keys of what was emitted, and nothing of handles that are not ours', () => {
  const life = handleLife()
  const handle = new TransactionHandle(controls, life, () => expect.unreachable('no rows were asked for'), emits)
  expect(TransactionHandle.keysEmittedBy(handle)).toEqual([])
  life.emit(['b', 'a', 'b'].map((key) => ({ key }) as Emission))
  expect(TransactionHandle.keysEmittedBy(handle)).toEqual(['a', 'b'])
  expect(TransactionHandle.keysEmittedBy({})).toEqual([])
})
