import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { fences, root } from './markdown.js'

const form = (name: string): string =>
  ['db.ts', 'server.ts']
    .map((file) => readFileSync(`${root}/test/e2e/apps/fixtures/express/${name}/${file}`, 'utf8'))
    .join('')

it('the lines that README begins with are those of the app that is run', () => {
  const [before, after] = fences('README.md')
  for (const [block, app] of [
    [before, form('as-it-was')],
    [after, form('with-reprise')],
  ] as const) {
    const lines = block?.text.split('\n').filter((line) => !['', '…'].includes(line)) ?? []
    expect(lines.length).toBeGreaterThan(1)
    for (const line of lines) expect(app.split('\n')).toContain(line)
  }
})

it('README counts them all', () => {
  const [before, after] = [form('as-it-was').split('\n'), form('with-reprise').split('\n')]
  const added = after.filter((line) => !before.includes(line))
  const removed = before.filter((line) => !after.includes(line))
  const imports = added.filter((line) => line.startsWith('import '))
  const counted = {
    changed: removed.length,
    fresh: added.length - imports.length - removed.length,
    imports: imports.length,
  }
  expect(counted).toEqual({ changed: 2, fresh: 1, imports: 3 })
  expect(readFileSync(`${root}/README.md`, 'utf8')).toContain('Two lines change, one is new, and so are three imports')
})
