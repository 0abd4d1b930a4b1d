import fc from 'fast-check'
import { expect, it } from 'vitest'
import { property } from '../../test/property.js'
import { privateCopy } from './call-identity.js'

property('is equal and shares no plain part with the original', [fc.jsonValue({ maxDepth: 4 })], (value) => {
  const copy = privateCopy(value)
  expect(copy).toEqual(value)
  const parts = new Set<unknown>()
  const visit = (part: unknown, into: (part: object) => void): void => {
    if (typeof part !== 'object' || part === null) return
    into(part)
    for (const inner of Object.values(part)) visit(inner, into)
  }
  visit(value, (part) => parts.add(part))
  visit(copy, (part) => expect(parts.has(part)).toBe(false))
})

it('keeps cycles, shared parts, holes, __proto__ and null prototypes', () => {
  const shared = { n: 1 }
  const value: Record<string, unknown> = { a: shared, b: [shared, shared] }
  value['self'] = value
  const copy = privateCopy(value)
  expect(copy['self']).toBe(copy)
  expect((copy['b'] as unknown[])[0]).toBe(copy['a'])
  expect(copy['a']).not.toBe(shared)
  const odd = JSON.parse('{"__proto__":{"x":[1]}}') as Record<string, { x: number[] }>
  const oddCopy = privateCopy(odd)
  expect(JSON.stringify(oddCopy)).toBe('{"__proto__":{"x":[1]}}')
  expect(Object.values(oddCopy)[0]).not.toBe(Object.values(odd)[0])
  expect(Object.getPrototypeOf(oddCopy)).toBe(Object.prototype)
  const bare = Object.assign(Object.create(null), { x: [1] })
  expect(Object.getPrototypeOf(privateCopy(bare))).toBeNull()
  // biome-ignore lint/suspicious/noSparseArray: a hole is what is tested
  expect(1 in privateCopy([1, , 3])).toBe(false)
})

it('leaves everything that is not plain as it is', () => {
  class Money {}
  const value = { at: new Date(0), bytes: new Uint8Array(2), money: new Money(), call: () => 1, map: new Map() }
  const copy = privateCopy(value)
  for (const name of Object.keys(value) as (keyof typeof value)[]) expect(copy[name]).toBe(value[name])
  expect(privateCopy(value.at)).toBe(value.at)
})

it('takes a time that grows with the size, whatever the depth', () => {
  let deep: unknown = 0
  for (let level = 0; level < 100_000; level++) deep = [deep]
  expect(Array.isArray(privateCopy(deep))).toBe(true)
})
