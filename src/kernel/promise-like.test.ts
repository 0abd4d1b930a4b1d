import { expect, it } from 'vitest'
import { isPromiseLike } from './promise-like.js'

const withThen = (value: object, then: unknown): object => Object.defineProperty(value, 'then', { value: then })
const work = (): void => undefined

it.each([
  ['a promise', Promise.resolve(), true],
  ['an object that can be waited for', withThen({}, work), true],
  ['a function that can be waited for', withThen(() => undefined, work), true],
  ['an object whose then is none', withThen({}, 1), false],
  ['an object', {}, false],
  ['a text', 'then', false],
  ['null', null, false],
  ['undefined', undefined, false],
])('%s', (_, value, waited) => expect(isPromiseLike<unknown>(value)).toBe(waited))
