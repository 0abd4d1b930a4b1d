// That no shape of document makes the work grow faster than the document.

import { describe, expect, it } from 'vitest'
import { canonicalJson } from './index.js'

describe('time grows in step with size', () => {
  const small = 131_072
  const times = 8
  // Linear work takes 8 times as long, quadratic work 64 times; the bound lies far from both.
  const bound = 32
  const limits = { maxBytes: 2 * times * small, maxDepth: 1_000 }

  const shapes: Readonly<Record<string, (size: number) => string>> = {
    'a long string': (size) => `"${'a'.repeat(size)}"`,
    'a string of escapes': (size) => `"${'\\u0041\\n\\ud83d\\ude00'.repeat(size / 20)}"`,
    'a string beyond ASCII': (size) => `"${'é€'.repeat(size / 5)}"`,
    'long digits': (size) => '7'.repeat(size),
    'long digits and a fraction': (size) => `${'7'.repeat(size / 2)}.${'3'.repeat(size / 2)}e-7`,
    'trailing zeros': (size) => `1${'0'.repeat(size)}`,
    'leading zeros of a fraction': (size) => `0.${'0'.repeat(size)}1`,
    'zeros behind the point': (size) => `1.${'0'.repeat(size)}`,
    'zeros of an exponent': (size) => `1e${'0'.repeat(size)}1`,
    'numbers that grow': (size) => `[${Array.from({ length: size / 5 }, () => '1e20').join(',')}]`,
    'white space': (size) => `${' '.repeat(size)}1`,
    'many elements': (size) => `[${'{},'.repeat(size / 3)}0]`,
    'members in order': (size) => members(size, (index) => index),
    'members in reverse': (size) => members(size, (index) => 999_999 - index),
    'members in disorder': (size) => members(size, (index) => (index * 7_919) % 999_983),
    'equal names': (size) => members(size, () => 1),
    'many small objects in disorder': (size) => `[${'{"b":1,"a":2},'.repeat(size / 14)}0]`,
    'long names that differ at the end': (size) =>
      `{${Array.from({ length: 64 }, (_, index) => `"${'n'.repeat(size / 64)}${99 - index}":0`).join(',')}}`,
    'names with an escape': (size) => namesBehind('\\u0001', size),
    'names with many escapes': (size) => namesBehind('\\u0001'.repeat(40), size),
    'names of quotes and backslashes': (size) => namesBehind('\\"\\\\'.repeat(10), size),
    'names of escapes and characters beyond ASCII': (size) => namesBehind('\\né😀'.repeat(10), size),
  }

  it.each(Object.entries(shapes))('%s', (_name, shape) => {
    const encoder = new TextEncoder()
    const smallTime = fastest(encoder.encode(shape(small)), 7)
    const largeTime = fastest(encoder.encode(shape(small * times)), 4)
    expect(largeTime / smallTime).toBeLessThan(bound)
  })

  // Names of as many bytes take as long, whatever they are made of: three times is far more than noise adds, and a
  // comparison that decodes both names takes ten times as long and more.
  it.each([
    ['\\u0001', 1],
    ['\\u0001', 10],
    ['\\u0001', 40],
    ['\\"', 10],
    ['\\"', 40],
    ['\\\\', 40],
    ['\\u001fé\\n😀', 10],
  ])('names that begin with %s, %i times, take no longer than plain ones', (start, count) => {
    const encoder = new TextEncoder()
    const begin = start.repeat(count)
    const plain = encoder.encode(namesBehind('n'.repeat(encoder.encode(begin).length), small * times))
    const escaped = encoder.encode(namesBehind(begin, small * times))
    const plainTime = fastest(plain, 4)
    expect(fastest(escaped, 4) / plainTime).toBeLessThan(3)
  })

  it('depth does not multiply size: no text is copied once per level', () => {
    const text = `"${'x'.repeat(small * times)}"`
    const encoder = new TextEncoder()
    const flat = fastest(encoder.encode(`{"b":${text},"a":0}`), 7)
    const deep = fastest(encoder.encode(`${'{"b":'.repeat(1_000)}${text}${',"a":0}'.repeat(1_000)}`), 7)
    expect(deep / flat).toBeLessThan(bound)
  })

  function members(size: number, number: (index: number) => number): string {
    return `{${Array.from({ length: size / 11 }, (_, index) => `"${String(number(index)).padStart(6, '0')}":0`).join(',')}}`
  }

  // Members in reverse order, whose names differ only behind the same start.
  function namesBehind(start: string, size: number): string {
    const length = Math.floor(size / (new TextEncoder().encode(start).length + 11))
    return `{${Array.from({ length }, (_, index) => `"${start}${999_999 - index}":0`).join(',')}}`
  }

  // The fastest of several runs: noise only ever adds. In processor time, since a machine that has other things to do
  // takes long runs from us and leaves us short ones.
  function fastest(source: Uint8Array, runs: number): number {
    let best = Number.POSITIVE_INFINITY
    for (let run = 0; run < runs; run++) {
      const start = process.cpuUsage()
      canonicalJson(source, limits)
      const { user, system } = process.cpuUsage(start)
      best = Math.min(best, user + system)
    }
    return best
  }
})
