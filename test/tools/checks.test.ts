// Every check of `npm run check` is seen failing: violations are planted in a copy of the repository, one at a time.

import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { copyRepository, root } from './repository-copy.js'

/** What to do with a file: its new text, a change of its text, or undefined to remove it. */
type Edit = string | ((text: string) => string) | undefined

interface Violation {
  readonly title: string
  readonly edits: Readonly<Record<string, Edit>>
  /** What the check says about it, all of it. */
  readonly says: readonly (string | RegExp)[]
  /** What it must not say. */
  readonly silentAbout?: RegExp
}

const append = (more: string) => (text: string) => text + more

const replace = (what: string | RegExp, by: string) => (text: string) => {
  const changed = text.replace(what, by)
  if (changed === text) throw new Error('the violation changes nothing')
  return changed
}

/** One line for each way to time or chance that must be found. */
const timeAndChance = [
  'export const a = Date.now()',
  'export const b = new Date()',
  'const D = Date',
  'export const d = globalThis.Date.now()',
  "export const e = globalThis['Date'].now()",
  'const { setTimeout: later } = globalThis',
  'export const f = performance.now()',
  'export const g = () => setTimeout(() => {}, 1)',
  'export const h = Math.random()',
  "export const i = Math['random']()",
  'const { random } = Math',
  'const M = Math',
  'export const j = { Math }',
  "export const l = Reflect.get(Math, 'random')",
  'export const m = crypto.randomUUID()',
  'export const n = process.hrtime.bigint()',
  "export const n2 = process['hrtime']()",
  'const { uptime } = f.g',
  'const { uptime: up } = f.g',
  'export const o = AbortSignal.timeout(5)',
  "export const o2 = AbortSignal['timeout'](5)",
  'const A = AbortSignal',
  "export const r = performance['now']()",
  "export const s = Date['now']()",
  "export const t = crypto['randomUUID']()",
  'export const u = new Intl.DateTimeFormat().format()',
  "export const v = Intl['DateTimeFormat']",
  "export const w = new Event('x').timeStamp",
  "export const x = new Event('x')?.['timeStamp']",
  "export const y = eval('1')",
  "export const z = new Function('return 1')",
  "export const z2 = globalThis.Function('return 1')",
  "import { setTimeout as s1 } from 'node:timers/promises'",
  "import { randomUUID } from 'node:crypto'",
  "import { hrtime } from 'node:process'",
  "import { runInThisContext } from 'node:vm'",
]
/**
 * What only looks like it: calls of names that were found where they were made, and members and types without a clock.
 */
const innocent = [
  'export const n3 = [D.now(), later(() => {}, 1), random(), M.random(), s1, randomUUID, hrtime, runInThisContext, up, A]',
  'export const n4 = Math.max(1, Math.abs(-2)) + { Math: 1, process: 2 }.process',
  'export const n5 = (value: AbortSignal): boolean => value instanceof AbortSignal && AbortSignal.any([]) === value',
  'export const n6 = new Intl.NumberFormat().format(1)',
]
const guiltyLines = timeAndChance.map((_, index) => index + 1)
const innocentLines = innocent.map((_, index) => timeAndChance.length + index + 1)

const exportWithoutTypes =
  '{\n      "default": "./dist/kernel/index.js",\n      "types": "./dist/kernel/index.d.ts"\n    }'

const violations: Readonly<Record<string, readonly Violation[]>> = {
  lint: [
    {
      title: 'a file in another format',
      edits: { 'src/kernel/planted.ts': '// Planted.\nexport const a = { b : "c" };\n' },
      says: ['src/kernel/planted.ts', 'Formatter would have printed'],
    },
    {
      title: 'a known mistake',
      edits: { 'tools/planted.mjs': '// Planted.\n\nexport const same = (a, b) => a == b\n' },
      says: ['tools/planted.mjs', 'noDoubleEquals'],
    },
  ],
  'time-and-chance': [
    {
      title: 'time and chance outside the kernel, under whatever name',
      edits: { 'src/identity/planted.ts': `${[...timeAndChance, ...innocent].join('\n')}\n` },
      says: guiltyLines.map((line) => new RegExp(`src/identity/planted\\.ts:${line}:`)),
      silentAbout: new RegExp(`planted\\.ts:(${innocentLines.join('|')}):`),
    },
    {
      title: 'the clock for tests is no exception',
      edits: { 'src/testing/manual-clock.ts': append('export const planted = Date.now()\n') },
      says: [/src\/testing\/manual-clock\.ts:\d+:/],
    },
    {
      title: 'outside, but not in the kernel and in tests',
      edits: {
        'src/kernel/planted.ts': 'export const a = Date.now()\n',
        'src/identity/planted.test.ts': 'export const a = Math.random()\n',
        'src/identity/planted.ts': 'export const a = Date.now()\n',
      },
      says: ['src/identity/planted.ts:1:'],
      silentAbout: /src\/kernel|planted\.test/,
    },
  ],
  types: [
    {
      title: 'a source that does not compile, and a declaration that needs inference',
      edits: {
        'src/kernel/planted.ts': "// Planted.\nexport const a: number = 'b'\n",
        'src/kernel/inferred.ts': '// Planted.\nexport const a = () => Math.max(1)\n',
      },
      says: [/src\/kernel\/planted\.ts\(2,14\): error TS2322/, /src\/kernel\/inferred\.ts.*error TS9007/],
    },
    {
      title: 'a test that does not compile',
      edits: { 'test/planted.test.ts': "export const a: number = 'b'\n" },
      says: [/test\/planted\.test\.ts\(1,14\): error TS2322/],
    },
    {
      title: 'a tool that does not compile',
      edits: { 'tools/planted.mjs': '// Planted.\n[].nothing()\n' },
      says: [/tools\/planted\.mjs\(2,4\): error TS2339/],
    },
  ],
  dependencies: [
    {
      title: 'every rule at once',
      edits: {
        'src/kernel/cycle-a.ts': "import type { B } from './cycle-b.js'\nexport type A = B | 1\n",
        'src/kernel/cycle-b.ts': "import type { A } from './cycle-a.js'\nexport type B = A | 2\n",
        'src/kernel/upwards.ts': "export * from '../identity/index.js'\n",
        'src/kernel/node-module.ts': "import { readFileSync } from 'node:fs'\nexport const a = readFileSync\n",
        'src/identity/node-types.ts': "import type { Stats } from 'node:fs'\nexport type A = Stats\n",
        'src/identity/past-the-index.ts': "export { sleep } from '../kernel/time/wait.js'\n",
        'src/identity/reaches-tests.ts': "export { property } from '../../test/property.js'\n",
        'src/identity/imports-a-test.ts': "export * from './key.test.js'\n",
        'src/identity/dev-dependency.ts': "export { default } from 'fast-check'\n",
        'src/identity/nowhere.ts': "export * from './absent.js'\n",
        'src/nameless/index.ts': "export * from '../kernel/index.js'\n",
        'src/planted.ts': "export * from './http/express/index.js'\n",
        'src/http/core/index.ts': 'export {}\n',
        'src/http/express/index.ts': "export * from '../core/index.js'\nexport * from '../koa/index.js'\n",
        'src/http/koa/index.ts': "export * from '../../stores/memory/index.js'\n",
        'src/stores/memory/index.ts': "export * from '../../cli/index.js'\n",
        'src/stores/redis/index.ts': "export { default } from 'fast-check'\n",
        'src/cli/index.ts': 'export {}\n',
      },
      says: [
        /no-cycle: src\/kernel\/cycle-[ab]\.ts/,
        /kernel-imports-only-what-is-below: src\/kernel\/upwards\.ts/,
        /no-node-modules-where-browsers-go: src\/kernel\/node-module\.ts/,
        /module-is-entered-by-its-index: src\/identity\/past-the-index\.ts/,
        /src-imports-only-src: src\/identity\/reaches-tests\.ts/,
        /src-does-not-import-tests: src\/identity\/imports-a-test\.ts/,
        /no-packages-in-the-core: src\/identity\/dev-dependency\.ts/,
        /resolvable: src\/identity\/nowhere\.ts/,
        /module-is-listed: src\/nameless\/index\.ts/,
        /main-entry-point-uses-indexes-of-concepts: src\/planted\.ts/,
        /adapters-of-a-family-stay-apart: src\/http\/express\/index\.ts → src\/http\/koa/,
        /adapters-stay-apart: src\/http\/koa\/index\.ts/,
        /adapters-do-not-import-apps: src\/stores\/memory\/index\.ts/,
        /adapters-import-only-peers: src\/stores\/redis\/index\.ts/,
      ],
      silentAbout: /node-types\.ts|express\/index\.ts → src\/http\/core/,
    },
  ],
  'dead-code': [
    {
      title: 'a file, an export and a dependency that nothing uses',
      edits: {
        'src/kernel/planted.ts': '// Planted.\nexport const a = 1\n',
        'src/kernel/runtime.ts': append('\n/** Planted. */\nexport const nobodyUsesThis = 1\n'),
        'package.json': replace('"devDependencies": {', '"devDependencies": {\n    "left-over": "1.0.0",'),
      },
      says: ['src/kernel/planted.ts', 'nobodyUsesThis', 'left-over'],
    },
  ],
  'lock-files': [
    {
      title: 'a download address',
      edits: {
        'bench/package-lock.json': replace('"version"', '"resolved": "https://example.com/a.tgz",\n      "version"'),
      },
      says: [/bench\/package-lock\.json: \S+ carries a download address/],
    },
    {
      title: 'a lock file that is not in step',
      edits: { 'package.json': replace('"devDependencies": {', '"devDependencies": {\n    "left-over": "1.0.0",') },
      says: ['package-lock.json: devDependencies differ from package.json'],
    },
  ],
  tidy: [
    {
      title: 'a file named after nothing (each law has its own violation in test/tools/tidy.test.ts)',
      edits: { 'src/kernel/utils.ts': '// Planted.\n' },
      says: ['file-names: a file is named after its concept', 'src/kernel/utils.ts: "utils.ts" says nothing'],
    },
  ],
  'api-reference': [
    {
      title: 'pages that are out of date, missing or left over',
      edits: {
        'docs/reference/api/README.md': append('\nPlanted.\n'),
        'docs/reference/api/planted.md': '# Planted\n',
        'docs/reference/api/kernel.md': undefined,
      },
      says: [
        'docs/reference/api/README.md is out of date',
        'docs/reference/api/planted.md describes nothing any more',
        'docs/reference/api/kernel.md is missing',
        'npm run docs',
      ],
    },
    {
      title: 'a link to nothing',
      edits: {
        'src/testing/index.ts': append('/** See {@link nobody}. */\nexport const misleading = 1\n'),
      },
      says: [/Failed to resolve link to "nobody"/],
    },
  ],
  sizes: [
    {
      title: 'an entry point that is larger than its limit',
      edits: { '.size-limit.mjs': replace(/'\.\/identity': '[^']+'/, "'./identity': '1 kB'") },
      says: [/reprise\/identity\s+Package size limit has exceeded/],
    },
    {
      title: 'an entry point without a limit',
      edits: { '.size-limit.mjs': replace(/\n *'\.\/identity': '[^']+',/, '') },
      says: ['Entry points without a limit in .size-limit.mjs: ./identity'],
    },
  ],
  'package-contents': [
    {
      title: 'a file that nobody needs, a missing document, a pointer to a map',
      edits: {
        'package.json': replace('"!dist/.stamp",', ''),
        'CHANGELOG.md': undefined,
        'src/testing/index.ts': append('\n//# sourceMappingURL=index.js.map\n'),
      },
      says: [
        'dist/.stamp does not belong into the tarball',
        'CHANGELOG.md is missing from the tarball',
        'dist/testing/index.js points to a source map that is not shipped',
      ],
    },
  ],
  publish: [
    {
      title: 'a private package, a version that the changelog does not know, and a link to what the tarball has not',
      edits: {
        'package.json': replace('"version": "', '"private": true,\n  "version": "1'),
        'README.md': append('\n[The sample service](examples/payments/README.md)\n'),
        'docs/start.md': append(
          '\n[The sample service](../examples/payments/README.md), [how to lint](../biome.json)\n',
        ),
      },
      says: [
        'package.json says private',
        /CHANGELOG\.md begins with "([\d.]+)", and package\.json has the version 1\1$/m,
        /^ *README\.md:\d+: examples\/payments\/README\.md leads nowhere in the tarball$/m,
        /^ *docs\/start\.md:\d+: \.\.\/biome\.json leads nowhere in the tarball$/m,
      ],
      silentAbout: /start\.md:\d+: \.\.\/examples/,
    },
    {
      title: 'a manifest that npm would correct',
      edits: { 'package.json': replace('"dist/cli/main.js"', '"./dist/cli/main.js"') },
      says: [/npm warn publish .*bin\[reprise\]/],
    },
  ],
  'package-manifest': [
    {
      title: 'conditions in an order that hides the types',
      edits: { 'package.json': replace(/\{\s*"types": "\.\/dist\/kernel\/index\.d\.ts",[^}]*\}/, exportWithoutTypes) },
      says: [/types.*should be the first/],
    },
  ],
  'package-types': [
    {
      title: 'an entry point without declarations',
      edits: { 'package.json': replace('./dist/kernel/index.d.ts', './dist/kernel/absent.d.ts') },
      says: ['"reprise/kernel"', /No types|UntypedResolution|could not be resolved|Resolution failed/i],
    },
  ],
  'entry-points': [
    {
      title: 'an entry point that require() cannot load',
      edits: { 'src/testing/index.ts': append('\nawait 0\n') },
      says: ['ERR_REQUIRE_ASYNC_MODULE', 'An entry point cannot be loaded with require'],
    },
    {
      title: 'an entry point that prints something',
      edits: { 'src/testing/index.ts': append("\nconsole.warn('hello')\n") },
      says: ['hello', 'loading it prints something'],
    },
    {
      title: 'declarations that promise what is not there',
      edits: { 'src/testing/index.ts': append('\nexport declare const promised: number\n') },
      says: [/consumer\.ts.*'?"promised"/, 'do not compile in a strict Node program'],
    },
    {
      title: 'declarations that only Node’s types can explain',
      edits: { 'src/simulator/index.ts': append('\nexport type Planted = NodeJS.Timeout\n') },
      says: ['NodeJS', 'do not compile in a strict browser program'],
    },
    {
      title: 'an entry point of a framework whose declarations need more than the framework',
      edits: { 'src/http/koa/index.ts': append("\nexport type Planted = import('kysely').Kysely<unknown>\n") },
      says: [/http\/koa\/index\.d\.ts.*kysely/, 'do not compile in a strict program with every framework'],
    },
  ],
}

let copy = ''
beforeAll(() => {
  copy = copyRepository()
})
afterAll(() => rmSync(copy, { recursive: true, force: true }))

/** Runs one check in the copy. A lock file that was changed on purpose must not start an installation. */
function check(name: string) {
  const env = { ...process.env, REPRISE_READY: copy, NO_COLOR: '1', FORCE_COLOR: undefined }
  return spawnSync(process.execPath, ['tools/run.mjs', 'check', name], { cwd: copy, encoding: 'utf8', env })
}

function read(path: string): string | undefined {
  try {
    return readFileSync(join(copy, path), 'utf8')
  } catch {
    return undefined
  }
}

function write(path: string, text: string | undefined): void {
  mkdirSync(dirname(join(copy, path)), { recursive: true })
  if (text === undefined) rmSync(join(copy, path), { force: true })
  else writeFileSync(join(copy, path), text)
}

/** Folders of planted modules would otherwise stay behind. */
function removeEmptyFolders(folder: string): void {
  if (folder === '.' || readdirSync(join(copy, folder)).length > 0) return
  rmdirSync(join(copy, folder))
  removeEmptyFolders(dirname(folder))
}

/** Plants the edits and answers how to take them back. */
function plant(edits: Violation['edits']): () => void {
  const before = Object.keys(edits).map((path) => [path, read(path)] as const)
  for (const [path, edit] of Object.entries(edits)) {
    write(path, typeof edit === 'function' ? edit(read(path) ?? '') : edit)
  }
  return () => {
    for (const [path, text] of before) {
      write(path, text)
      if (text === undefined) removeEmptyFolders(dirname(path))
    }
  }
}

describe('every check was seen failing', () => {
  it('has a violation here, and a reason', () => {
    const { stdout } = spawnSync(process.execPath, ['tools/run.mjs', 'check', '--list'], {
      cwd: root,
      encoding: 'utf8',
    })
    const listed = stdout.trim().split('\n')
    expect(listed.map((line) => line.split(' ')[0]).sort()).toEqual(Object.keys(violations).sort())
    for (const line of listed) expect(line).toMatch(/^\S+ +\S.{20,}$/)
  })

  const cases = Object.entries(violations).flatMap(([name, list]) =>
    list.map((violation) => [name, violation.title, violation] as const),
  )
  it.each(cases)('%s: %s', (name, _title, { edits, says, silentAbout }) => {
    const restore = plant(edits)
    try {
      const { stdout, status } = check(name)
      for (const text of says) expect(stdout).toMatch(text)
      if (silentAbout !== undefined) expect(stdout).not.toMatch(silentAbout)
      expect(stdout).toMatch(new RegExp(`^1 checks in .* failed: ${name}$`, 'm'))
      expect(status).toBe(1)
    } finally {
      restore()
    }
  })

  it('refuses the name of a check that does not exist', () => {
    const { status, stderr } = check('no-such-check')
    expect(status).toBe(2)
    expect(stderr).toContain('There is no check or option no-such-check')
  })
})
