// The laws of form, held against the repository, and each of them seen failing once.

import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { type Exemptions, hints, laws, treeOfTexts, treeOnDisk } from '../../tools/tidy.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))

describe('the repository', () => {
  const tree = treeOnDisk(root)
  it.each(laws.map((law) => [law.name, law.why, law] as const))('%s: %s', (_name, _why, law) => {
    expect(law.find(tree)).toEqual([])
  })
})

const lines = (count: number): string => `// Long.\n${'export {}\n'.repeat(count - 1)}`
const aFunction = 'export function f(): void {}\n'

/** A repository that breaks no law. */
const clean: Record<string, string> = {
  'README.md': '# Title\n\nA page that has something to say, and [a link](docs/page.md#a-part).\n',
  'docs/page.md': '# Page\n\nSome text that is long enough to be worth a page of its own.\n\n## A part\n',
  'docs/reference/errors.md': '# Errors\n\n`ONE_CODE`: what it means, and what to do about it.\n',
  'src/kernel/index.ts': '// The ground.\nexport * from "./errors.js"\n',
  'src/kernel/errors.ts': "// Errors.\n/** The codes. */\nexport const errorCodes = { ONE_CODE: 'x' } as const\n",
  'src/kernel/one.ts': `// One.\n/** It throws. */\nexport function one(): never { throw new Error('ONE_CODE') }\n`,
  'src/kernel/one.test.ts': "import { one } from './one.js'\nit('throws', () => one())\n",
}

/** For each law, files that break it, and what is said about them. */
const violations: Record<string, readonly (readonly [files: Record<string, string>, says: RegExp])[]> = {
  'file-names': [
    [{ 'src/kernel/utils.ts': '// x\n' }, /utils\.ts.* says nothing/],
    [{ 'test/helpers/a.ts': '// x\n' }, /helpers.* says nothing/],
  ],
  'file-size': [[{ 'src/kernel/long.ts': lines(401) }, /long\.ts: 401 lines/]],
  'comment-width': [
    [{ 'src/kernel/a.ts': `// ${'x'.repeat(118)}\n` }, /a\.ts:1: a comment that is wider than 120 columns/],
    [{ 'src/kernel/a.ts': `// x\nconst a = 1 /* ${'x'.repeat(110)} */\n` }, /a\.ts:2: a comment that is wider/],
    [{ 'src/kernel/a.ts': `// x\n/**\n * ${'x'.repeat(118)}\n */\n` }, /a\.ts:3: a comment that is wider/],
  ],
  'function-size': [[{ 'src/kernel/f.ts': `// x\nfunction f() {\n${'\n'.repeat(70)}}\n` }, /f\.ts:2: f has 72 lines/]],
  'module-size': [
    [
      Object.fromEntries(Array.from({ length: 13 }, (_, i) => [`src/module/f${i}.ts`, '// x\n'])),
      /src\/module: 13 source/,
    ],
  ],
  'module-contract': [
    [{ 'src/module/a.ts': '// x\n' }, /src\/module: a module has an index\.ts/],
    [{ 'src/module/index.ts': 'export {}\n' }, /first line is a comment/],
  ],
  'first-comment': [[{ 'src/kernel/a.ts': 'export {}\n' }, /a\.ts: begins with a comment/]],
  'exact-counts': [
    [{ 'src/kernel/a.ts': '// x\nconst maxRetries = 3\n' }, /a\.ts:2: "maxRetries" is unclear/],
    [{ 'src/kernel/a.ts': '// x\nf({ retries: 3 })\n' }, /a\.ts:2: "retries" is unclear/],
  ],
  'no-top-level-await': [
    [{ 'src/kernel/a.ts': '// x\nawait f()\n' }, /a\.ts:2: await at the top level/],
    [{ 'src/kernel/a.ts': '// x\nfor await (const a of b) {}\n' }, /a\.ts:2: await at the top level/],
  ],
  'test-beside': [
    [{ 'src/kernel/a.ts': aFunction }, /src\/kernel\/a\.ts: no test in its folder/],
    [{ 'src/kernel/json/a.ts': aFunction, 'src/kernel/json/b.test.ts': "import './b.js'" }, /json\/a\.ts: no test/],
  ],
  'documented-exports': [
    [{ 'src/kernel/a.ts': `// x\n\n${aFunction}` }, /a\.ts:3: what others use/],
    [{ 'src/kernel/a.ts': '// x\n\nexport interface A {\n  b: 1 }' }, /a\.ts:3: what others use/],
  ],
  'every-test-runs': [
    [{ 'src/kernel/a.test.ts': "it.skip('x', () => {})\n" }, /a\.test\.ts:1: every test runs/],
    [{ 'test/a.test.ts': "describe.only('x', () => {})\n" }, /a\.test\.ts:1: every test runs/],
    [{ 'test/a.test.ts': "it.runIf(false)('x', () => {})\n" }, /a\.test\.ts:1: every test runs/],
  ],
  'codes-documented': [
    [{ 'docs/reference/errors.md': '# Errors\n' }, /does not explain ONE_CODE/],
    [{ 'docs/reference/errors.md': '# Errors\n\nONE_CODE OTHER_CODE\n' }, /OTHER_CODE is no error code/],
    [
      {
        'src/kernel/errors.ts': 'const errorCodes = { ONE_CODE: 1, A_CODE: 2 }',
        'docs/reference/errors.md': '# Errors\n\nONE_CODE A_CODE\n',
      },
      /ONE_CODE is out of alphabetical order/,
    ],
  ],
  'codes-used': [[{ 'src/kernel/one.ts': '// One.\n' }, /nothing throws ONE_CODE/]],
  'not-silenced': [
    ...[
      'biome-ignore lint: because',
      'biome-ignore-all lint: because',
      'biome-ignore-start lint: because',
      'biome-ignore lint/style: because',
      'biome-ignore-all lint/plugin: because',
      'biome-ignore lint/plugin/time-and-chance: because',
      'biome-ignore plugin: because',
      'biome-ignore lint/style/noRestrictedGlobals: because',
      'biome-ignore lint/style/noRestrictedImports: because',
      'biome-ignore lint/style/useConst lint: because',
      'biome-ignore: because',
    ].map((comment) => [{ 'src/module/a.ts': `// ${comment}\n` }, /a\.ts:1: .* switched off/] as const),
    [{ 'src/kernel/a.ts': '/* biome-ignore lint: because */\n' }, /a\.ts:1: .* switched off/],
    [{ 'src/module/biome.json': '{ "root": false }\n' }, /biome\.json: .* not switched off/],
    [{ 'src/module/a.ts': '// x\n// @ts-ignore\n' }, /a\.ts:2: .* switched off/],
  ],
  'nothing-left-over': [[{ 'src/kernel/a.ts': `// ${'TO'}${'DO'}: later\n` }, /a\.ts:1: do it now/]],
  'links-resolve': [
    [{ 'docs/a.md': '# A\n\n[x](absent.md)\n' }, /a\.md:3: absent\.md leads nowhere/],
    [{ 'docs/a.md': '# A\n\n[x](page.md#nothing)\n' }, /finds no heading #nothing/],
    [{ 'docs/a.md': '# A\n\n[x](../../b.md)\n' }, /leads out of the repository/],
    [{ 'docs/a.md': '# A\n\n[x](https://example.com)\n' }, /leads out of the repository/],
    [{ 'docs/a.md': '# A\n\nsee https://example.com\n' }, /leads out of the repository/],
  ],
  'named-files-exist': [
    [{ 'docs/a.md': '# A\n\nsee `src/kernel/absent.ts`\n' }, /a\.md:3: there is no src\/kernel\/absent\.ts/],
    [{ 'docs/a.md': '# A\n\nsee `test/absent/`\n' }, /a\.md:3: there is no test\/absent/],
    [{ 'docs/a.md': '# A\n\nsee `.rules.cjs`\n', '.rules.mjs': '// x\n' }, /a\.md:3: there is no \.rules\.cjs/],
    [{ 'docs/a.md': '# A\n\n`absent.test.ts` `one.test.ts` `tools/<name>.mjs` `src/*/b.ts`\n' }, /no absent\.test\.ts/],
    [{ 'docs/a.md': '# A\n\n```ts src/made/b.ts\n```\n\n`src/made` `src/maid`\n' }, /a\.md:6: there is no src\/maid/],
  ],
  'pages-have-content': [
    [{ 'docs/a.md': '# A\n' }, /a\.md: a page has something to say/],
    [{ 'docs/a.md': 'No title, and yet a text that is long enough to be one.\n' }, /a\.md: a page has a title/],
  ],
  'no-impossible-promise': [
    [
      { 'docs/a.md': '# A\n\nReprise gives you exactly-once\ndelivery. It does not exist elsewhere.\n' },
      /a\.md: speaks of/,
    ],
    [{ 'docs/a.md': '# A\n\nIt offers exactly once message delivery.\n' }, /a\.md: speaks of/],
    [{ 'src/kernel/a.ts': '// Messages are delivered to you exactly once.\n' }, /a\.ts: speaks of/],
  ],
  'no-machine-paths': [
    [{ 'docs/a.md': `# A\n\nsee ${'/ho'}${'me/'}somebody/project\n` }, /a\.md:3: a path of some machine/],
  ],
}

describe('every law was seen failing', () => {
  it('has a violation here', () => {
    expect(Object.keys(violations).sort()).toEqual([...laws, ...hints].map((law) => law.name).sort())
  })

  it.each([...laws, ...hints].map((law) => [law.name, law] as const))('%s', (name, law) => {
    expect(law.find(treeOfTexts(clean))).toEqual([])
    for (const [files, says] of violations[name] ?? []) {
      const findings = law.find(treeOfTexts({ ...clean, ...files }))
      expect(findings).toHaveLength(1)
      expect(findings[0]).toMatch(says)
    }
  })

  it('lets a page deny what cannot be promised', () => {
    const law = laws.find(({ name }) => name === 'no-impossible-promise')
    const page = '# A\n\nExactly-once\ndelivery does not exist. An effect within a domain does.\n'
    expect(law?.find(treeOfTexts({ 'docs/a.md': page }))).toEqual([])
  })

  it('lets a comment switch off one rule that is not about time and chance', () => {
    const law = laws.find(({ name }) => name === 'not-silenced')
    const text = '// biome-ignore lint/suspicious/noSparseArray: a hole is the bad input under test\n'
    expect(law?.find(treeOfTexts({ 'src/module/a.ts': text }))).toEqual([])
  })

  it('accepts an exemption that is needed, and no other', () => {
    const find = (lawName: string, files: Record<string, string>, exemptions: Partial<Exemptions>) =>
      laws.find(({ name }) => name === lawName)?.find(treeOfTexts(files, exemptions))
    const long = { 'src/kernel/a.ts': `// x\nfunction f() {\n${'\n'.repeat(70)}}\n` }
    const oneTable = { longFunctions: { 'src/kernel/a.ts#f': 'one table' } }
    expect(find('function-size', long, oneTable)).toEqual([])
    expect(find('function-size', {}, oneTable)).toEqual(['src/kernel/a.ts#f: its exemption is no longer needed'])
    const large = Object.fromEntries(Array.from({ length: 14 }, (_, index) => [`src/module/f${index}.ts`, '// x\n']))
    expect(find('module-size', large, { largeModules: { 'src/module': { files: 14, why: 'many' } } })).toEqual([])
    expect(find('module-size', large, { largeModules: { 'src/module': { files: 13, why: 'many' } } })).toHaveLength(1)
  })

  it('counts a part of a concept as tested when a test in its folder reaches it', () => {
    const law = laws.find(({ name }) => name === 'test-beside')
    const files = {
      'src/kernel/json/whole.ts': `import { f } from './part.js'\n${aFunction}`,
      'src/kernel/json/part.ts': aFunction,
      'src/kernel/json/whole.test.ts': "import { f } from './whole.js'\n",
    }
    expect(law?.find(treeOfTexts(files))).toEqual([])
  })
})
