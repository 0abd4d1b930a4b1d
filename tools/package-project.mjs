// The package as a user gets it: packed, installed into an empty project, every door opened there.

import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { doorsOf, readPackage } from './doors.mjs'
import { runNpm } from './install.mjs'
import { packageScript, Refusal, run, runNode } from './process.mjs'

/** @typedef {{ folder: string, tarball: string, files: { path: string }[] }} Packed */

/** Packs the built package into a fresh folder. @returns {Promise<Packed>} */
export async function pack(/** @type {string} */ root) {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-packed-'))
  const args = ['pack', '--json', '--ignore-scripts', '--loglevel=error', '--pack-destination', folder]
  const { code, output } = await runNpm(args, { cwd: root, quiet: true })
  if (code !== 0) throw new Refusal(`${output.trim()}\n\nnpm pack failed with code ${code}.`)
  const [{ filename, files }] = JSON.parse(output.slice(output.indexOf('[')))
  return { folder, tarball: join(folder, filename), files }
}

/** Installs the tarball into an empty project, without network and without scripts; the answer is the project's folder. */
export async function installPacked(/** @type {Packed} */ packed) {
  const project = join(packed.folder, 'project')
  mkdirSync(project)
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'empty', private: true, type: 'module' }))
  const args = [
    'install',
    packed.tarball,
    '--offline',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ]
  const { code, output } = await runNpm(args, { cwd: project, quiet: true })
  if (code !== 0) throw new Refusal(`${output.trim()}\n\nThe tarball cannot be installed into an empty project.`)
  return project
}

/**
 * The names that each door gives at run time, under a given Node. Anything written to stderr is an error, so that a
 * warning printed on import is noticed; only Node's own notice about require(esm) is expected on older versions.
 * @param {string} root
 * @param {string} project
 * @param {string} node path of the binary
 * @param {'import' | 'require'} how
 * @returns {Promise<Record<string, string[]>>}
 */
export async function openDoors(root, project, node, how) {
  const specifiers = JSON.stringify(doorsOf(root).map((door) => door.specifier))
  const extension = how === 'import' ? 'mjs' : 'cjs'
  const script = join(project, `open.${extension}`)
  const open = how === 'import' ? 'await import(name)' : 'require(name)'
  writeFileSync(
    script,
    `const opened = {}\nfor (const name of ${specifiers}) opened[name] = Object.keys(${open}).sort()\nconsole.log(JSON.stringify(opened))\n`,
  )
  const { code, output } = await run(node, ['--disable-warning=ExperimentalWarning', script], {
    cwd: project,
    quiet: true,
  })
  try {
    if (code === 0) return JSON.parse(output)
  } catch {
    // Something else was printed too; shown below.
  }
  throw new Refusal(
    `${output.trim()}\n\nA door cannot be opened with ${how} on ${node}, or opening it prints something.`,
  )
}

/** A program that names every door and every name behind it, in both directions: declared and present at run time. */
function consumerSource(/** @type {Record<string, string[]>} */ opened) {
  const lines = Object.entries(opened).flatMap(([specifier, names], index) => [
    `import * as door${index} from '${specifier}'`,
    `export const present${index}: readonly (keyof typeof door${index})[] = ${JSON.stringify(names)}`,
    `type Absent${index} = Exclude<keyof typeof door${index}, ${names.map((name) => `'${name}'`).join(' | ') || 'never'}>`,
    `export const absent${index}: [Absent${index}] extends [never] ? true : Absent${index} = true`,
  ])
  return `${lines.join('\n')}\n`
}

/** Doors that stand on modules of Node, in their declarations too: stores, servers, the proxy of the fault kit, the guard around Node's calls. */
const nodeOnly = /^reprise\/(stores\/|http\/(?!client$)|testing$|effect-guard$)/

/** Doors whose declarations name types of a framework: whoever opens one has it, and `npm run check -- types` compiles them with it. */
const ofFrameworks = /\/http\/(express|fastify|hono|koa|nest)$/

/**
 * Compiles the consumer strictly, library declarations included, once with Node's types and once as for a browser.
 * @param {string} root
 * @param {string} project
 * @param {Record<string, string[]>} opened
 */
export async function compileConsumer(root, project, opened) {
  const kinds = {
    Node: { lib: ['es2023'], types: ['node'], typeRoots: [join(root, 'node_modules', '@types')] },
    browser: { lib: ['es2023', 'dom'], types: [] },
  }
  const bare = Object.fromEntries(Object.entries(opened).filter(([door]) => !ofFrameworks.test(door)))
  const anywhere = Object.fromEntries(Object.entries(bare).filter(([door]) => !nodeOnly.test(door)))
  for (const [kind, options] of Object.entries(kinds)) {
    writeFileSync(join(project, 'consumer.ts'), consumerSource(kind === 'browser' ? anywhere : bare))
    const compilerOptions = {
      ...options,
      target: 'es2022',
      module: 'nodenext',
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: false,
      noEmit: true,
    }
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['consumer.ts'] }))
    const { code, output } = await runNode(packageScript(root, 'typescript', 'tsc'), [], { cwd: project, quiet: true })
    if (code !== 0)
      throw new Refusal(`${output.trim()}\n\nThe declarations do not compile in a strict ${kind} program.`)
  }
}

/** What is wrong with the contents of the tarball: [] when it holds what it should and nothing else. */
export function contentProblems(/** @type {string} */ root, /** @type {Packed} */ packed) {
  const paths = packed.files.map((file) => file.path)
  const doors = doorsOf(root)
  const needed = [
    'package.json',
    'README.md',
    'LICENSE',
    'CHANGELOG.md',
    ...doors.flatMap((door) => [door.script, door.types]),
  ]
  const sources = new Set(readPackage(root).files)
  const problems = needed.filter((path) => !paths.includes(path)).map((path) => `${path} is missing from the tarball`)
  if (!sources.has('dist')) problems.push('`files` in package.json does not name dist')
  for (const path of paths) {
    if (needed.includes(path)) continue
    if (!/^dist\/.+\.(js|d\.ts)$/.test(path)) problems.push(`${path} does not belong into the tarball`)
    else if (/\.(test|fuzz)\./.test(path)) problems.push(`${path} is a test`)
  }
  for (const path of paths.filter((path) => path.startsWith('dist/'))) {
    const text = readFileSync(join(root, path), 'utf8')
    if (text.includes('sourceMappingURL')) problems.push(`${path} points to a source map that is not shipped`)
    if (text.includes(root)) problems.push(`${path} holds a path of this machine`)
  }
  return problems
}
