// The order of names against the order of JavaScript strings, which is that of UTF-16 code units.

import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { property } from '../../../test/property.js'
import { canonicalJson } from './index.js'

// Every escape there is, what the escapes look like when they are text, and characters of every length of UTF-8.
const controls = Array.from({ length: 0x20 }, (_, code) => String.fromCharCode(code))
const looks = ['"', '\\', '\\u0001', '\\n', 'u', '0', '1', '9', 'a', 'f', 'n', 'b', 't', 'r', 'u0001', 'u001f']
const further = [' ', '!', '#', '[', ']', '~', '\u007f', '\u0080', 'é', '\u07ff', '\u0800', '€', '\ud7ff']
const beyond = ['\ue000', '\ufeff', '\uffff', '\u{10000}', '😀', '\u{10ffff}']
const unit = fc.oneof(...[controls, looks, further, beyond].map((list) => fc.constantFrom(...list)))
const name = fc.oneof(fc.string({ unit, maxLength: 6 }), fc.string({ unit: 'binary', maxLength: 6 }))
// Two names with a common beginning, since others differ at once.
const pair = fc.tuple(name, name, name).map(([shared, one, other]) => [shared + one, shared + other] as const)

const order = (left: string, right: string) => (left < right ? -1 : left > right ? 1 : 0)

describe('the order of names', () => {
  property(
    'is that of UTF-16 code units',
    [pair],
    ([left, right]) => {
      // JSON.stringify writes strings as RFC 8785 does.
      const [first, second] = order(left, right) > 0 ? [right, left] : [left, right]
      const expected = `{${JSON.stringify(first)}:0,${JSON.stringify(second)}:0}`
      expect(canonicalJson(`{${JSON.stringify(left)}:0,${JSON.stringify(right)}:0}`)).toBe(expected)
      expect(canonicalJson(`{${JSON.stringify(right)}:0,${JSON.stringify(left)}:0}`)).toBe(expected)
    },
    { cases: 50_000 },
  )

  property(
    'is that of the members of small and of large objects',
    [name, fc.array(name, { maxLength: 40 })],
    (shared, ends) => {
      const names = ends.map((end) => shared + end)
      const text = (list: readonly string[]) =>
        `{${list.map((each) => `${JSON.stringify(each)}:${ends.length}`).join(',')}}`
      expect(canonicalJson(text(names))).toBe(text(names.toSorted(order)))
    },
  )
})
