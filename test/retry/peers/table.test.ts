// The page about other libraries and the tests named after them name each other.

import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { root } from '../../markdown.js'

const page = 'docs/reference/peers-retry-bugs.md'
const rows = [...readFileSync(`${root}/${page}`, 'utf8').matchAll(/\[([^\]]+)\]\(\.\.\/\.\.\/([^)]+\.test\.ts)\)/g)]

describe('the table of what other libraries taught', () => {
  it('is there', () => {
    expect(rows.length).toBeGreaterThan(50)
  })

  it.each(rows.map(([, title = '', file = '']) => [file, title] as const))('%s has %j', (file, title) => {
    const tests = readFileSync(`${root}/${file}`, 'utf8')
    expect(tests.includes(`'${title}'`), 'a test of that name').toBe(true)
  })

  it('names every test of this folder that is named after another library', () => {
    const listed = new Set(rows.map(([, title]) => title))
    for (const file of ['budgets', 'cancellation', 'retry-after', 'safety']) {
      const tests = readFileSync(`${root}/test/retry/peers/${file}.test.ts`, 'utf8')
      for (const [, title = ''] of tests.matchAll(/'([^'\n]*(?:\d|tower|Finagle|p-retry|MongoDB)[^'\n]*: [^'\n]+)'/g)) {
        expect(listed, title).toContain(title)
      }
    }
  })
})
