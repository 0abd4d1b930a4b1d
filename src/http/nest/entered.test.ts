import 'reflect-metadata'
import { expect, it } from 'vitest'
import { runToMethod, sayEntry } from './entered.js'

class Ledger {
  readonly name = 'north'

  async charge(amount: number, _note?: string): Promise<string> {
    if (amount === 0) throw new Error('method')
    return `${this.name} ${amount}`
  }
}

const said = { any: 'thing' }
Reflect.defineMetadata('said', said, Ledger.prototype.charge)
sayEntry(Ledger.prototype, 'charge', Object.getOwnPropertyDescriptor(Ledger.prototype, 'charge') as PropertyDescriptor)
const ledger = new Ledger()

it('tells what was thrown before the method from what the method threw', async () => {
  const early = await runToMethod(() => Promise.reject(new Error('pipe')))
  expect(early.thrown).toMatchObject({ error: { message: 'pipe' }, isEntered: false })
  const late = await runToMethod(async () => ledger.charge(await Promise.resolve(0)))
  expect(late.thrown).toMatchObject({ error: { message: 'method' }, isEntered: true })
  expect(await runToMethod(() => ledger.charge(7))).toEqual({ value: 'north 7' })
})

it('tells runs that are under way at once apart', async () => {
  let open = (): void => undefined
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  const waiting = runToMethod(async () => {
    await gate
    throw new Error('pipe')
  })
  expect(await runToMethod(() => ledger.charge(7))).toEqual({ value: 'north 7' })
  open()
  expect((await waiting).thrown?.isEntered).toBe(false)
})

it('leaves a method as it was: called by anybody, with its name, its parameters and its metadata', async () => {
  expect(await ledger.charge(7)).toBe('north 7')
  expect([ledger.charge.name, ledger.charge.length]).toEqual(['charge', 2])
  expect(Reflect.getOwnMetadata('said', ledger.charge)).toBe(said)
})
