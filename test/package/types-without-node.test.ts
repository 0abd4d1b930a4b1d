// The declarations of the package where nobody has Node's: a browser, or a runtime with the fetch standard.

import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { root } from '../markdown.js'

const { exports: ways } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports: object }
const entryPoints = Object.entries(ways)
  .filter(([, target]) => typeof target === 'object')
  .map(([entryPoint]) => entryPoint.slice(2))
// Those for servers and tests that run on Node and nowhere else; docs/start.md says so.
const needNode = ['http/express', 'http/fastify', 'http/koa', 'http/nest', 'http/node', 'testing']

const folder = mkdtempSync(join(tmpdir(), 'reprise-types-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

beforeAll(() => {
  // A copy, as from a tarball: a link would lead back to where Node's types are.
  const installed = join(folder, 'node_modules', 'reprise')
  mkdirSync(installed, { recursive: true })
  cpSync(join(root, 'dist'), join(installed, 'dist'), { recursive: true })
  cpSync(join(root, 'package.json'), join(installed, 'package.json'))
  symlinkSync(join(root, 'node_modules', 'hono'), join(folder, 'node_modules', 'hono'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
})

/** What the compiler says of a program that loads these entry points. */
function complaints(opened: readonly string[]): string[] {
  const names = opened.map((_, number) => `entryPoint${number}`)
  const lines = opened.map(
    (entryPoint, number) => `import * as ${names[number]} from 'reprise${entryPoint && `/${entryPoint}`}'`,
  )
  writeFileSync(join(folder, 'program.ts'), `${lines.join('\n')}\nexport const opened = [${names.join(', ')}]\n`)
  const options = '--noEmit --strict --module nodenext --target es2023 --lib es2023,dom'.split(' ')
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  const { stdout } = spawnSync(process.execPath, [tsc, ...options, 'program.ts'], { cwd: folder, encoding: 'utf8' })
  return stdout.split('\n').filter((line) => line !== '')
}

it('the entry points that are not for Node alone compile with the library of a browser, and every declaration is looked at', () => {
  expect(entryPoints).toEqual(expect.arrayContaining([...needNode, '', 'http/core', 'http/fetch', 'http/hono']))
  expect(complaints(entryPoints.filter((entryPoint) => !needNode.includes(entryPoint)))).toEqual([])
})

it('those for Node do ask for its types: nothing of them is lying about', () => {
  expect(complaints(['http/node'])).toEqual([expect.stringMatching(/TS2591: Cannot find name 'node:http'/)])
})
