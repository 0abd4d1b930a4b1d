import { expect, it } from 'vitest'
import { memory } from '../../stores/memory/index.js'
import { placeOf, placeOfRecords } from './place.js'
import { operations, Registry } from './registry.js'

const answers = (name: string) => ({ ...({} as ReturnType<Registry['list']>[number]), name })

it('knows each name once, in the order of definition, and the process knows them all', () => {
  const [one, two] = [new Registry(), new Registry()]
  one.add(answers('b'))
  one.add(answers('a'))
  two.add(answers('a'))
  expect(() => one.add(answers('a'))).toThrow(expect.objectContaining({ code: 'OPERATION_DEFINED_TWICE' }))
  expect(one.list().map(({ name }) => name)).toEqual(['b', 'a'])
  expect(operations().filter((known) => [...one.list(), ...two.list()].includes(known))).toHaveLength(3)
})

it('is one for each store, found by its records', () => {
  const db = memory({ name: 'shop' })
  expect(placeOfRecords(db.records)).toMatchObject({ domain: 'shop', manifest: { engine: 'memory' }, deadline: 10_000 })
  const { registry } = placeOfRecords(db.records)
  const again = placeOf({ name: 'shop', records: db.records, manifest: db.manifest } as never, {})
  expect(again.registry).toBe(registry)
  const unsupported = expect.objectContaining({ code: 'CAPABILITY_UNSUPPORTED' })
  expect(() => placeOfRecords({} as never)).toThrow(unsupported)
  expect(() => placeOf({ name: 'shop', manifest: db.manifest } as never, {})).toThrow(unsupported)
})
