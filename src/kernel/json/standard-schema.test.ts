import { expect, it } from 'vitest'
import { isStandardSchema, issuePointer } from './standard-schema.js'

it('knows a schema by its interface, be it an object or a function', () => {
  const standard = { version: 1, vendor: 'test', validate: () => ({ value: 1 }) }
  expect(isStandardSchema({ '~standard': standard })).toBe(true)
  expect(isStandardSchema(Object.assign(() => undefined, { '~standard': standard }))).toBe(true)
  for (const other of [undefined, null, 'text', {}, { '~standard': {} }, () => undefined]) {
    expect(isStandardSchema(other)).toBe(false)
  }
})

it('says where an issue is as a JSON Pointer', () => {
  expect(issuePointer({ message: 'odd' })).toBe('')
  expect(issuePointer({ message: 'odd', path: ['items', 0, { key: 'a/b~c' }] })).toBe('/items/0/a~1b~0c')
})
