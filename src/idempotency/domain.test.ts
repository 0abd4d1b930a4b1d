import { expect, it } from 'vitest'
import { systemClock } from '../kernel/index.js'
import { memory } from '../stores/memory/index.js'
import { manualClock } from '../testing/index.js'
import type { OperationAnswers } from './definition.js'
import { addOperation, operationDomain, operations, timeOfRecords } from './domain.js'
import { operationsOf } from './operations.js'

const answers = (name: string) => ({ name }) as OperationAnswers

it('knows each name once, in the order of definition, and the process knows them all', () => {
  const [one, two] = [operationDomain(memory({ name: 'one' })), operationDomain(memory({ name: 'two' }))]
  addOperation(one, answers('b'))
  addOperation(one, answers('a'))
  addOperation(two, answers('a'))
  expect(() => addOperation(one, answers('a'))).toThrow(expect.objectContaining({ code: 'OPERATION_DEFINED_TWICE' }))
  expect([...one.operations.keys()]).toEqual(['b', 'a'])
  const both = [...one.operations.values(), ...two.operations.values()]
  expect(operations().filter((known) => both.includes(known))).toHaveLength(3)
})

it('is one for each store, found by its records', () => {
  const clock = manualClock()
  const db = memory({ name: 'shop', clock })
  const domain = operationDomain({ name: 'other', manifest: db.manifest, records: db.records })
  expect(domain).toMatchObject({ name: 'shop', manifest: { engine: 'memory' }, deadlineMs: 10_000 })
  expect(timeOfRecords(db.records).clock).toBe(clock)
  const unsupported = expect.objectContaining({ code: 'CAPABILITY_UNSUPPORTED' })
  expect(() => operationsOf({ name: 'shop', manifest: db.manifest } as never)).toThrow(unsupported)
})

it('goes by the system’s clock where records belong to no domain', () => {
  expect(timeOfRecords({} as never)).toMatchObject({ clock: systemClock, deadlineMs: 10_000 })
})
