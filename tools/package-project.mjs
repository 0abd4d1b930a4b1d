// The package as a user gets it: packed, installed into an empty project, every entry point loaded there.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { entryPointsOf, readPackage } from './entry-points.mjs'
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

/**
 * Installs the tarball into an empty project, without network and without scripts; the answer is the project's folder.
 */
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
 * The names that each entry point gives at run time, under a given Node. Anything written to stderr is an error, so
 * that a warning printed on import is noticed; only Node's own notice about require(esm) is expected on older versions.
 * @param {string} root
 * @param {string} project
 * @param {string} node path of the binary
 * @param {'import' | 'require'} how
 * @returns {Promise<Record<string, string[]>>}
 */
export async function loadEntryPoints(root, project, node, how) {
  const specifiers = JSON.stringify(entryPointsOf(root).map((entryPoint) => entryPoint.specifier))
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
    `${output.trim()}\n\nAn entry point cannot be loaded with ${how} on ${node}, or loading it prints something.`,
  )
}

/**
 * A program that names every entry point and every name behind it, in both directions: declared and present at run
 * time.
 */
function consumerSource(/** @type {Record<string, string[]>} */ opened) {
  const lines = Object.entries(opened).flatMap(([specifier, names], index) => [
    `import * as entryPoint${index} from '${specifier}'`,
    `export const present${index}: readonly (keyof typeof entryPoint${index})[] = ${JSON.stringify(names)}`,
    `type Absent${index} = Exclude<keyof typeof entryPoint${index}, ${names.map((name) => `'${name}'`).join(' | ') || 'never'}>`,
    `export const absent${index}: [Absent${index}] extends [never] ? true : Absent${index} = true`,
  ])
  return `${lines.join('\n')}\n`
}

/**
 * Entry points that stand on modules of Node, in their declarations too: stores, servers, the proxy of the fault kit,
 * the guard around Node's calls.
 */
const nodeOnly = /^reprise\/(stores\/|http\/(?!client$)|testing$|effect-guard$)/

/** Entry points whose declarations name types of a framework: whoever loads one has it. */
const ofFrameworks = /\/http\/(express|fastify|hono|koa|nest)$/

/** What a user of every framework writes. */
const frameworkProgram = join('test', 'package', 'fixtures', 'framework-consumer.ts')

/** Puts the peers that users bring, and the types of theirs, into the project: links to those of the repository. */
function linkPeers(/** @type {string} */ root, /** @type {string} */ project) {
  for (const peer of Object.keys(readPackage(root).peerDependencies ?? {})) {
    for (const name of [peer, `@types/${peer}`]) {
      const [from, to] = [root, project].map((folder) => join(folder, 'node_modules', name))
      if (from === undefined || to === undefined || !existsSync(from)) continue
      mkdirSync(dirname(to), { recursive: true })
      symlinkSync(from, to, 'dir')
    }
  }
}

/**
 * Compiles consumers strictly: once with Node's types, once as for a browser, library declarations included, and with
 * every framework as Node and as bundlers find files.
 * @param {string} root
 * @param {string} project
 * @param {Record<string, string[]>} opened
 */
export async function compileConsumer(root, project, opened) {
  const chosen = (/** @type {(entryPoint: string) => boolean} */ isWanted) =>
    consumerSource(Object.fromEntries(Object.entries(opened).filter(([entryPoint]) => isWanted(entryPoint))))
  const node = { lib: ['es2023'], types: ['node'], typeRoots: [join(root, 'node_modules', '@types')] }
  const bare = chosen((entryPoint) => !ofFrameworks.test(entryPoint))
  const anywhere = chosen((entryPoint) => !ofFrameworks.test(entryPoint) && !nodeOnly.test(entryPoint))
  await compile(root, project, 'a strict Node program', node, { 'consumer.ts': bare })
  await compile(
    root,
    project,
    'a strict browser program',
    { lib: ['es2023', 'dom'], types: [] },
    { 'consumer.ts': anywhere },
  )
  linkPeers(root, project)
  const sources = {
    'consumer.ts': chosen(() => true),
    'program.ts': readFileSync(join(root, frameworkProgram), 'utf8'),
  }
  await compile(root, project, 'a strict program with every framework', node, sources)
  const bundled = { ...node, module: 'esnext', moduleResolution: 'bundler' }
  await compile(root, project, 'a strict program with every framework that is bundled', bundled, sources)
}

/**
 * Compiles files in the project. What is wrong in declarations outside of it, those of a framework, is not ours to
 * refuse.
 * @param {string} root
 * @param {string} project
 * @param {string} what
 * @param {object} options
 * @param {Record<string, string>} sources
 */
async function compile(root, project, what, options, sources) {
  const compilerOptions = {
    target: 'es2022',
    module: 'nodenext',
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
    ...options,
  }
  for (const [name, text] of Object.entries(sources)) writeFileSync(join(project, name), text)
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: Object.keys(sources) }))
  const tsc = packageScript(root, 'typescript', 'tsc')
  const { code, output } = await runNode(tsc, ['--pretty', 'false'], { cwd: project, quiet: true })
  const isOurs = code !== 0 && output.split('\n').some((line) => /^(?!\.\.)\S.*error TS/.test(line))
  if (isOurs) throw new Refusal(`${output.trim()}\n\nThe declarations do not compile in ${what}.`)
}

/** What is wrong with the contents of the tarball: [] when it holds what it should and nothing else. */
export function contentProblems(/** @type {string} */ root, /** @type {Packed} */ packed) {
  const paths = packed.files.map((file) => file.path)
  const entryPoints = entryPointsOf(root)
  const needed = [
    'package.json',
    'README.md',
    'LICENSE',
    'CHANGELOG.md',
    ...entryPoints.flatMap((entryPoint) => [entryPoint.script, entryPoint.types]),
  ]
  const sources = new Set(readPackage(root).files)
  const problems = needed.filter((path) => !paths.includes(path)).map((path) => `${path} is missing from the tarball`)
  if (!sources.has('dist')) problems.push('`files` in package.json does not name dist')
  for (const path of paths) {
    if (needed.includes(path)) continue
    if (/^docs\/(?!reference\/api\/).+\.(md|sql)$|^(ARCHITECTURE|CONTRIBUTING)\.md$/.test(path)) continue
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
