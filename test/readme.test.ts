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
