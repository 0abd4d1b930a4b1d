import { expect, it } from 'vitest'
import { handleLife } from '../handle-life.js'
import { HandleRows } from './handle-rows.js'
import type { Rows } from './rows.js'

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
  const handle = new HandleRows(controls, handleLife(), () => {
    made += 1
    return Object.fromEntries(names.map((name) => [name, noted(name)])) as unknown as Rows
  })
  expect(made).toBe(0)
  for (const name of names) await (handle[name] as (...values: unknown[]) => Promise<unknown>)('item', { id: 1 }, name)
  expect(made).toBe(1)
  expect(calls).toEqual(names.map((name) => [name, 'item', { id: 1 }, name]))
})

it('lets the transaction wait for a call that the body did not wait for', async () => {
  const life = handleLife()
  let answer = (): void => undefined
  const readRow = () => new Promise<undefined>((resolve) => (answer = () => resolve(undefined)))
  const handle = new HandleRows(controls, life, () => ({ readRow }) as unknown as Rows)
  void handle.readRow('item', { id: 1 })
  const settled = life.settle()
  expect(settled).toBeInstanceOf(Promise)
  answer()
  await settled
  await expect(handle.readRow('item', { id: 1 })).rejects.toMatchObject({ code: 'TRANSACTION_OVER' })
})
