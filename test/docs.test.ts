import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { pagesWithCommands } from './cli/pages-with-commands.js'
import { commentFences, commentFencesOf, namesWithExample, namesWithoutExample } from './doc-comments.js'
import { type Fence, fences, fencesOf, leadsOf, pages, root } from './markdown.js'
import { isAppBlock } from './package/start-page.js'

// Inside the package, so that `reprise` is found by its own name, as built.
const folder = `${root}/.cache/snippets`

interface Snippet extends Fence {
  readonly file: string
  /** What the page says it prints: the block right after it, or nothing. */
  readonly prints: string
}

// The apps of the page for newcomers are made from the tarball: test/package/start.test.ts.
const blocks = pages()
  .flatMap(fences)
  .filter((fence) => !isAppBlock(fence))
const snippets = snippetsOf(blocks)
const comments = commentFences()
const examples = snippetsOf(comments)

function snippetsOf(fences: readonly Fence[]): Snippet[] {
  return fences.flatMap((fence, index) => {
    if (fence.info !== 'ts') return []
    const next = fences[index + 1]
    const prints = next?.page === fence.page && next.info === 'text' ? next.text : ''
    return [{ ...fence, file: `${fence.page.replaceAll(/[^a-zA-Z0-9]+/g, '-')}-${fence.line}`, prints }]
  })
}

// One program for all: most of the time goes into the types that they share.
beforeAll(() => {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const { file, text } of snippets) writeFileSync(`${folder}/${file}.ts`, text)
  // An example may end with a value that nobody reads. As an export it is not reported as unused; an import still is.
  for (const { file, text } of examples) {
    writeFileSync(
      `${folder}/${file}.ts`,
      text.replaceAll(/^(?=(async|class|const|declare|function|interface|let|type) )/gm, 'export '),
    )
  }
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
})

describe('snippets in the documentation', () => {
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

describe('examples in doc comments', () => {
  it('are there for what users call most', () => {
    expect(namesWithoutExample(comments)).toEqual([])
  })

  it.each(examples.filter(({ prints }) => prints !== '').map((each) => [`${each.page}:${each.line}`, each] as const))(
    '%s prints what the comment says',
    (_place, { file, prints }) => {
      expect(execFileSync(process.execPath, [`${folder}/${file}.js`], { encoding: 'utf8', cwd: root })).toBe(prints)
    },
  )

  it('are found by the name of what they describe', () => {
    const text = [
      '/**',
      ' * A function.',
      ' *',
      ' * @example',
      ' * ```ts',
      ' * if (a) {',
      ' *   b()',
      ' * }',
      ' * ```',
      ' */',
      'export function first(): void {}',
      'export interface Second {',
      '  /**',
      '   * A member.',
      '   * ```ts',
      '   * third()',
      '   * ```',
      '   */',
      '  third(): void',
      '}',
      '/**',
      ' * ```ts',
      ' * fourth',
      ' * ```',
      ' */',
      'export const fourth = { fifth: 5 }',
    ]
    expect(commentFencesOf('src/a.ts', text.join('\n')).map(({ line, name, text }) => [line, name, text])).toEqual([
      [5, 'first', 'if (a) {\n  b()\n}\n'],
      [15, 'Second.third', 'third()\n'],
      [22, 'fourth', 'fourth\n'],
    ])
    expect(() => commentFencesOf('src/a.ts', '/**\n * ```js\n * ```\n */\nconst a = 1')).toThrow(/^src\/a\.ts:2: /)
  })

  it('are missed where they are not', () => {
    const names = Object.entries(namesWithExample).flatMap(([entry, names]) => names.map((name) => `${entry}: ${name}`))
    expect(namesWithoutExample([])).toEqual(names)
    expect(names.length).toBeGreaterThan(25)
  })
})

describe('blocks in the documentation', () => {
  it.each([
    ['another kind', '```typescript\n```\n'],
    ['a kind of its own', '```ts no-check\n```\n'],
    ['no kind', '```\n```\n'],
    ['an indented block', '  ```ts\n  ```\n'],
    ['a block in a list', '- ```ts\n  ```\n'],
    ['a block in a quotation', '> ```ts\n> ```\n'],
    ['tildes', '~~~ts\n~~~\n'],
    ['four backticks', '````ts\n````\n'],
    ['a blank behind the kind', '```ts \n```\n'],
    ['a recipe outside of CONTRIBUTING.md', '```ts src/a.ts\n```\n'],
    ['an open end', '```ts\n'],
  ])('are refused with %s', (_what, text) => {
    expect(() => fencesOf('docs/a.md', `# A\n\n${text}`)).toThrow(/^docs\/a\.md:3: /)
  })

  it('are taken as they are written', () => {
    const text = '```ts\na\n  ```\n```\n\n```text\nb\n```\n'
    const kinds = fencesOf('docs/a.md', text).map(({ line, info, text }) => [line, info, text])
    expect(kinds).toEqual([
      [1, 'ts', 'a\n  ```\n'],
      [6, 'text', 'b\n'],
    ])
    expect(fencesOf('CONTRIBUTING.md', '```diff src/a.ts\n+a\n```\n')).toHaveLength(1)
  })
})

describe('pieces of files in the documentation', () => {
  const pieces = blocks.filter(({ info, page }) => info.includes(' ') && page !== 'CONTRIBUTING.md')

  it('exist', () => {
    expect(pieces.length).toBeGreaterThan(10)
  })

  it.each(pieces.map((piece) => [`${piece.page}:${piece.line}`, piece] as const))(
    '%s is as it stands in its file, which is run',
    (_place, { info, text }) => {
      const source = readFileSync(`${root}/${info.split(' ')[1]}`, 'utf8')
      expect(`\n${source}`).toContain(`\n${text}`)
    },
  )
})

describe('reference pages', () => {
  const references = pages().filter((page) => page.startsWith('docs/reference/'))

  it.each(references)('%s says in each section what is literal first: at most 40 words stand before it', (page) => {
    const long = leadsOf(readFileSync(`${root}/${page}`, 'utf8')).filter(({ words }) => words > 40)
    expect(long).toEqual([])
  })

  it('are seen where they do not', () => {
    const section = (lead: string, literal: string): string => `# A\n\n${lead}\n\n${literal}\n\nb c\n`
    for (const literal of ['```ts\n# no heading\n```', '| a |', '- a', '1. a', '> a', '<!-- made: a -->']) {
      expect(leadsOf(section('one two\nthree', literal))).toEqual([{ heading: '# A', words: 3 }])
    }
    expect(leadsOf('# A\n\none two\n\n## B\n\n### C\n\none\n\n- two\n')).toEqual([{ heading: '### C', words: 1 }])
  })
})

describe('commands in the documentation', () => {
  // Each command that a page shows, and what runs it: words of a test or of .ci/run, or a check by its name.
  const ranBy: Record<string, { in: string; words: string } | { check: string }> = {
    'npm start': { in: 'test/tools/run.test.ts', words: "spawn('npm', ['start']" },
    'npm run examples -- enforcement': { in: 'test/e2e/enforcement.test.ts', words: "['examples', 'enforcement']" },
    'npm run examples -- enforcement --drill --json': {
      in: 'test/e2e/enforcement.test.ts',
      words: "['examples', 'enforcement', '--drill', '--json', ",
    },
    'npm run examples': { in: 'test/examples.test.ts', words: "['tools/run.mjs', 'examples']" },
    'npm test': { in: '.ci/run', words: '\nnpm test -- ' },
    'npm run check': { in: '.ci/run', words: '\nnpm run check <' },
    'npm run format': { in: 'test/tools/run.test.ts', words: "project.run(['format'])" },
    'npm run docs': { in: 'test/tools/contributing.test.ts', words: "run('docs')" },
    'npm run fuzz': { in: 'test/fuzz/fuzz.test.ts', words: "fuzz('--cases', " },
    'npm run bench -- identity': { in: 'test/tools/bench.test.ts', words: "bench('identity', " },
    'npm run test:matrix': { in: 'test/tools/run.test.ts', words: "project.run(['test:matrix', " },
    'npm run test:tools': { in: '.ci/run', words: '\nnpm run test:tools -- ' },
    'npm run walk': { in: 'test/walk/walk.test.ts', words: "['tools/run.mjs', 'walk', '--json', '--verbose']" },
    'npm run torture -- operations': { in: 'test/torture/torture.test.ts', words: "expectHolds('operations')" },
    'npm run torture -- messaging --messages 1000000': {
      in: 'test/torture/torture.test.ts',
      words: "expectHolds('messaging')",
    },
    'npm pack': { check: 'package-contents' },
    'npm run bench -- messaging': { in: 'test/tools/bench.test.ts', words: "bench('messaging', " },
    'npm run bench -- http': { in: 'test/tools/bench.test.ts', words: "bench('http', " },
    'npm run bench -- operation': { in: 'test/tools/bench.test.ts', words: "bench('operation', " },
    'npm run bench -- retry': { in: 'test/tools/bench.test.ts', words: "bench('retry', " },
    'npm run bench -- transaction': { in: 'test/tools/bench.test.ts', words: "bench('transaction', " },
    'npm run peers': { in: 'test/http/peers.test.ts', words: "runPeers('Reprise', " },
    'node order.cjs': { in: 'test/package/commonjs.test.ts', words: "process.execPath, ['order.cjs']" },
    'npx jest': { in: 'test/package/commonjs.test.ts', words: "it('npx jest: " },
    'NODE_OPTIONS=--experimental-vm-modules npx jest': {
      in: 'test/package/commonjs.test.ts',
      words: "it('NODE_OPTIONS=--experimental-vm-modules npx jest: ",
    },
    'npx reprise simulate storm --attempts 6 --budget none': {
      in: 'test/cli/simulate.test.ts',
      words: "'simulate', 'storm', '--attempts', '6', '--budget', 'none'",
    },
    'npx reprise simulate storm --attempts 6': {
      in: 'test/cli/simulate.test.ts',
      words: "'simulate', 'storm', '--attempts', '6', '--seconds'",
    },
  }
  // The commands about a store are run page by page: test/cli/pages.test.ts.
  const shown = blocks
    .filter(({ info, page }) => info === 'sh' && !pagesWithCommands.includes(page))
    .flatMap(({ text }) => text.trim().split('\n'))
    .map((line) => line.replace(/\s+#.*$/, ''))

  it('are those below', () => {
    expect([...new Set(shown)].sort()).toEqual(Object.keys(ranBy).sort())
  })

  it.each(Object.entries(ranBy))('%s is run by %j', (_command, by) => {
    if ('check' in by) {
      const list = execFileSync(process.execPath, ['tools/run.mjs', 'check', '--list'], { cwd: root, encoding: 'utf8' })
      expect(list).toMatch(new RegExp(`^${by.check} `, 'm'))
    } else {
      expect(readFileSync(`${root}/${by.in}`, 'utf8')).toContain(by.words)
    }
  })
})
