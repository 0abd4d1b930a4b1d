import { expect, it } from 'vitest'
import { scripted } from '../../test/transaction/scripted-engine.js'
import { memory } from '../stores/memory/index.js'
import { operationsOf } from './operations.js'

it('are those of one domain, with its records', () => {
  const db = memory({ name: 'shop' })
  expect(db.operations()).toEqual([])
  expect(typeof db.records.read).toBe('function')
})

it('need a store that keeps records', () => {
  expect(() => operationsOf(scripted())).toThrow(expect.objectContaining({ code: 'CAPABILITY_UNSUPPORTED' }))
})
