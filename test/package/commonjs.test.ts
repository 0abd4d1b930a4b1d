// The page about CommonJS and Jest, done as it says, from the packed tarball: its files are written and run. With
// REPRISE_LONG, which `npm run test:matrix -- apps` sets, in Jest too.

import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findNode } from '../../tools/node-versions.mjs'
import { fences, root } from '../markdown.js'
import { makeTarballProject, type TarballProject } from './tarball-project.js'

const page = 'docs/guides/use-it-from-commonjs-and-jest.md'
const isLong = process.env['REPRISE_LONG'] !== undefined
const ofJest = isLong ? ['jest', 'ts-jest', '@types/jest', 'express', '@types/express', 'libsql'] : []

/** The files of the page, by name: the blocks after a paragraph that names one in bold. */
const files = new Map(
  [
    ...readFileSync(join(root, page), 'utf8').matchAll(/\*\*([\w.-]+)\*\*:\n\n```text\n([^`]*(?:`(?!``)[^`]*)*)```$/gm),
  ].map(([, name = '', text = '']) => [name, text]),
)
/** What the page says that a command prints. */
const printed = fences(page).find((_, index, all) => all[index - 1]?.info === 'sh')?.text

let project: TarballProject
beforeAll(() => {
  project = makeTarballProject({}, ofJest)
  for (const [name, text] of files) writeFileSync(join(project.folder, name), text)
})
afterAll(() => project?.remove())

it('the page has the files that are run here', () => {
  expect([...files.keys()]).toEqual([
    'order.cjs',
    'tsconfig.json',
    'orders.ts',
    'orders.test.ts',
    'reprise-to-commonjs.js',
    'jest.config.js',
  ])
})

it('node order.cjs prints what the page says', () => {
  const options = { cwd: project.folder, encoding: 'utf8' } as const
  expect(execFileSync(process.execPath, ['order.cjs'], { ...options, stdio: ['ignore', 'pipe', 'ignore'] })).toBe(
    printed,
  )
  const { stderr } = spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', 'order.cjs'], options)
  expect(stderr).toBe('')
})

it('what is imported and what is required are the same', () => {
  const program = "import('reprise').then((imported) => console.log(imported.scope === require('reprise').scope))"
  const words = ['--disable-warning=ExperimentalWarning', '-e', program]
  expect(execFileSync(process.execPath, words, { cwd: project.folder, encoding: 'utf8' })).toBe('true\n')
})

it('TypeScript is compiled to CommonJS, and runs', () => {
  const config = JSON.parse(files.get('tsconfig.json') ?? '')
  config.compilerOptions.types = ['node']
  writeFileSync(join(project.folder, 'tsconfig.build.json'), JSON.stringify({ ...config, files: ['orders.ts'] }))
  project.npx(['tsc', '-p', 'tsconfig.build.json', '--outDir', 'built'])
  const built = join(project.folder, 'built', 'orders.js')
  expect(readFileSync(built, 'utf8')).toContain('require("reprise")')
  const program = `require(${JSON.stringify(built)}).placeOrder({ key: 'k-1', item: 'pen' }).then(console.log)`
  const words = ['--disable-warning=ExperimentalWarning', '-e', program]
  expect(execFileSync(process.execPath, words, { cwd: project.folder, encoding: 'utf8' })).toBe("{ ordered: 'pen' }\n")
})

it('the configuration of Jest lets Reprise through, and nothing else, with npm and with pnpm', () => {
  const config = createRequire(join(project.folder, 'package.json'))('./jest.config.js') as {
    transformIgnorePatterns: string[]
  }
  const places = [
    'reprise',
    '.pnpm/reprise@0.1.0/node_modules/reprise',
    'express',
    '.pnpm/express@5.3.0/node_modules/express',
  ]
  const isIgnored = (path: string): boolean =>
    config.transformIgnorePatterns.some((text) => new RegExp(text).test(path))
  expect(places.map((place) => isIgnored(`/shop/node_modules/${place}/dist/index.js`))).toEqual([
    false,
    false,
    true,
    true,
  ])
})

// Jest takes hundreds of packages.
if (isLong) {
  describe('Jest', () => {
    beforeAll(() => {
      for (const name of ['charges.test.ts', 'every-entry-point.test.ts']) {
        cpSync(join(root, 'test', 'package', 'fixtures', name), join(project.folder, name))
      }
      writeFileSync(join(project.folder, 'plain.config.js'), "module.exports = { preset: 'ts-jest' }\n")
    })

    /** Runs Jest, with a cache that goes with the folder, and answers what it says. */
    function jest(words: readonly string[], { node = process.execPath, env = {} } = {}): string {
      const script = join(project.folder, 'node_modules', 'jest', 'bin', 'jest.js')
      const options = { cwd: project.folder, encoding: 'utf8', env: { ...process.env, CI: 'true', ...env } } as const
      return spawnSync(node, [script, '--cacheDirectory=cache', ...words], options).stderr
    }
    const allPassed = /^Tests: +(\d+) passed, \1 total$/m

    it('refuses the package without more, as the page says', () => {
      expect(jest(['--config=plain.config.js', 'orders'])).toContain('Must use import to load ES Module')
    })

    it('npx jest: compiled to CommonJS by the transformer of the page', () => {
      const said = jest([])
      expect(said).toMatch(/^PASS .*orders\.test\.ts/m)
      expect(said).toMatch(allPassed)
    })

    it('NODE_OPTIONS=--experimental-vm-modules npx jest: on Node 24, with nothing configured', ({ skip }) => {
      const found = findNode(root, 24)
      if ('why' in found) return skip(found.why)
      const env = { NODE_OPTIONS: '--experimental-vm-modules' }
      const said = jest(['--config=plain.config.js'], { node: found.binary, env })
      expect(said).toMatch(/^PASS .*orders\.test\.ts/m)
      expect(said).toMatch(allPassed)
    })
  })
}
