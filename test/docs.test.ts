import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Fence, fences, pages, root } from './markdown.js'

// Inside the package, so that `reprise` is found by its own name, as built.
const folder = `${root}/.cache/snippets`

interface Snippet extends Fence {
  readonly file: string
  /** What the page says it prints: the block right after it, or nothing. */
  readonly prints: string
}

const blocks = pages().flatMap(fences)
const snippets: Snippet[] = blocks.flatMap((fence, index) => {
  if (fence.info !== 'ts') return []
  const next = blocks[index + 1]
  const prints = next?.page === fence.page && next.info === 'text' ? next.text : ''
  return [{ ...fence, file: `${fence.page.replaceAll(/[^a-zA-Z0-9]+/g, '-')}-${fence.line}`, prints }]
})

describe('snippets in the documentation', () => {
  beforeAll(() => {
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
    for (const { file, text } of snippets) writeFileSync(`${folder}/${file}.ts`, text)
    const config = {
      extends: '../../tsconfig.json',
      compilerOptions: { noEmit: false, outDir: '.', incremental: false, tsBuildInfoFile: null },
      include: ['*.ts'],
    }
    writeFileSync(`${folder}/tsconfig.json`, JSON.stringify(config))
    const tsc = `${root}/node_modules/typescript/bin/tsc`
    const { status, stdout } = spawnSync(process.execPath, [tsc, '-p', folder], { encoding: 'utf8' })
    expect(stdout).toBe('')
    expect(status).toBe(0)
  }, 120_000)

  it('exist', () => {
    expect(snippets.length).toBeGreaterThan(10)
  })

  it.each(snippets.map((snippet) => [`${snippet.page}:${snippet.line}`, snippet] as const))(
    '%s prints what the page says',
    (_place, { file, prints }) => {
      expect(prints, 'a snippet is followed by a text block with its output').not.toBe('')
      const output = execFileSync(process.execPath, [`${folder}/${file}.js`], { encoding: 'utf8', cwd: root })
      expect(output).toBe(prints)
    },
  )
})

describe('commands in the documentation', () => {
  // Each command that a page shows, and the test that runs it.
  const ranBy: Record<string, string> = {
    'npm start': 'test/tools/run.test.ts, on a fresh copy',
    'npm test': '.ci/run, on a fresh clone',
    'npm run check': '.ci/run, on a fresh clone',
    'npm run build': 'test/tools/run.test.ts',
    'npm run format': 'the check format, which it repairs',
    'npm run docs': 'the check reference, which it repairs',
    'npm run fuzz': 'test/fuzz/fuzz.test.ts',
    'npm run bench -- identity': 'test/bench.test.ts',
    'npm run test:matrix': 'by hand, before a release',
    'npm pack': 'the check tarball',
  }
  const shown = blocks
    .filter(({ info }) => info === 'sh')
    .flatMap(({ text }) => text.trim().split('\n'))
    .map((line) => line.replace(/\s+#.*$/, ''))

  it.each([...new Set(shown)])('%s is run by something', (command) => {
    expect(ranBy[command]).toBeDefined()
  })
})
