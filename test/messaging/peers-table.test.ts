// The page about other outboxes and the tests that it names are there, and each test named after a report is on it.

import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { root } from '../markdown.js'

const page = 'docs/reference/peers-messaging-bugs.md'
const rows = [...readFileSync(`${root}/${page}`, 'utf8').matchAll(/\[([^\]]+)\]\(\.\.\/\.\.\/([^)]+\.ts)\)/g)]

describe('the table of what other outboxes taught', () => {
  it('is there', () => {
    expect(rows.length).toBeGreaterThan(30)
  })

  it.each(rows.map(([, title = '', file = '']) => [file, title] as const))('%s has %j', (file, title) => {
    expect(readFileSync(`${root}/${file}`, 'utf8').includes(`'${title}'`), 'a test of that name').toBe(true)
  })

  it('names every test that is named after a report', () => {
    const listed = new Set(rows.map(([, title]) => title))
    for (const file of ['test/messaging/peers.test.ts', 'test/stores/messages/peers.test.ts']) {
      const titles = [...readFileSync(`${root}/${file}`, 'utf8').matchAll(/'([^'\n]+#\d+[^'\n]*: [^'\n]+)'/g)]
      expect(titles.length).toBeGreaterThan(3)
      for (const [, title = ''] of titles) expect(listed, title).toContain(title)
    }
  })
})
