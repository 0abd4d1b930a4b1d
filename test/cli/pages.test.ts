// Runs the commands that the documentation shows, with the built program, and compares their output.
// REPRISE_WRITE_DOCS=1 writes what they print into the pages.

import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { fences, root } from '../markdown.js'
import { pagesWithCommands } from './pages-with-commands.js'

// Inside the package, so that the operations find `reprise` by its own name, as built.
const folder = `${root}/.cache/commands`
const write = process.env['REPRISE_WRITE_DOCS'] === '1'
const program = `npx() { shift; "${process.execPath}" "${root}/dist/cli/main.js" "$@"; }\n`

function prepared(): void {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const name of ['operations.mjs', 'prepare.mjs'])
    copyFileSync(`${root}/test/cli/fixtures/${name}`, `${folder}/${name}`)
  const said = execFileSync(process.execPath, ['prepare.mjs'], { cwd: folder, encoding: 'utf8' })
  expect(said).toBe('OPERATION_UNKNOWN\n')
}

function writePage(page: string, commands: string, before: string, printed: string): void {
  const blocks = (prints: string): string => `\`\`\`sh\n${commands}\`\`\`\n\n\`\`\`text\n${prints}\`\`\`\n`
  const text = readFileSync(`${root}/${page}`, 'utf8')
  writeFileSync(
    `${root}/${page}`,
    text.replace(blocks(before === '\n' ? '' : before), () => blocks(printed)),
  )
}

/** What differs from run to run: moments, and the random names of claims. */
function steady(text: string): string {
  return text
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '<moment>')
    .replaceAll(/just now|\d+ (second|minute)s? (ago|old)|in \d+ (second|minute|hour)s?\b/g, '<age>')
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<token>')
    .replaceAll(/("\w+AtMs"|"atMs"|"nowMs"):\d+/g, '$1:<ms>')
}

describe.each(pagesWithCommands)('%s', (page) => {
  const blocks = fences(page)
  const shown = blocks.flatMap(({ info, text, line }, index) => {
    const next = blocks[index + 1]
    return info === 'sh' ? [{ line, text, prints: next?.info === 'text' ? next.text : '' }] : []
  })

  it('shows what its commands print', () => {
    expect(shown.length).toBeGreaterThan(0)
    prepared()
    for (const { line, text, prints } of shown) {
      const printed = execFileSync('sh', ['-ec', program + text], { cwd: folder, encoding: 'utf8' })
      if (write) writePage(page, text, prints, printed)
      else expect(steady(printed), `${page}:${line}`).toBe(steady(prints))
    }
  })
})
