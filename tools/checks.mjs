// Every check of `npm run check`, as data: a name, one line that says why it exists, and what to run.
//
// To add one: add an entry here, and plant a violation for it in test/tools/checks.test.ts, which insists on one.

import { ensureBuilt } from './build.mjs'
import { lockFileProblems } from './lock-files.mjs'
import { otherNode } from './node-versions.mjs'
import { compileConsumer, contentProblems, installPacked, loadEntryPoints, pack } from './package-project.mjs'
import { packageScript, plainEnvironment, Refusal, runNode } from './process.mjs'
import { repositoryFiles } from './repository-files.mjs'

/**
 * @typedef {object} Context
 * @property {string} root
 * @property {() => Promise<import('./package-project.mjs').Packed>} packed the tarball, packed once for all checks
 */

/**
 * @typedef {object} Check
 * @property {string} name
 * @property {string} why one line
 * @property {(context: Context) => Promise<string | { hint: string } | void>} run throws a Refusal when the check
 *   fails; may answer a note, which --verbose shows, or a hint, which is always shown
 */

/** The rules that keep time and chance in the kernel; they are a check of their own, with a reason of its own. */
const banRules = ['plugin', 'style/noRestrictedGlobals', 'style/noRestrictedImports']

/**
 * Runs a tool of a dev dependency, and refuses with its output when it fails.
 * @param {Context} context
 * @param {string} script
 * @param {readonly string[]} args
 */
async function tool({ root }, script, args) {
  const { code, output } = await runNode(script, args, { cwd: root, quiet: true, env: plainEnvironment() })
  if (code !== 0) throw new Refusal(output.trim() || `ended with code ${code}`)
  return output.trim()
}

function refuseAny(/** @type {readonly string[]} */ problems) {
  if (problems.length > 0) throw new Refusal(problems.join('\n'))
}

/** @type {Check['run']} */
async function types(context) {
  await ensureBuilt(context.root) // examples and tests import the package by its own name
  const tsc = packageScript(context.root, 'typescript', 'tsc')
  await tool(context, tsc, ['--noEmit', '-p', 'tsconfig.json'])
  await tool(context, tsc, ['--noEmit', '-p', 'tools/tsconfig.json'])
  await tool(context, tsc, ['--noEmit', '-p', 'examples/payments/page/tsconfig.json']) // what runs in a browser
}

/** @type {Check['run']} */
async function entryPoints(context) {
  const { root } = context
  const project = await installPacked(await context.packed())
  const loaded = await loadEntryPoints(root, project, process.execPath, 'import')
  const empty = Object.keys(loaded).filter((name) => loaded[name]?.length === 0)
  refuseAny(empty.map((name) => `${name} exports nothing`))
  await compileConsumer(root, project, loaded)
  const newer = await otherNode(root, 24)
  const nodes = 'why' in newer ? [process.execPath] : [process.execPath, newer.binary]
  for (const node of nodes) {
    const required = await loadEntryPoints(root, project, node, 'require')
    if (JSON.stringify(required) !== JSON.stringify(loaded))
      throw new Refusal(`require gives other names than import on ${node}`)
  }
  return 'why' in newer ? `${newer.why}: require(esm) was tried on this Node only` : undefined
}

/** @type {readonly Check[]} */
export const checks = [
  {
    name: 'lint',
    why: 'one format and no known mistake, so that reviews are about meaning',
    run: (context) => {
      const args = ['check', '--error-on-warnings', '--max-diagnostics=50', ...banRules.map((rule) => `--skip=${rule}`)]
      return tool(context, packageScript(context.root, '@biomejs/biome'), args)
    },
  },
  {
    name: 'time-and-chance',
    why: 'clocks and random numbers come from the kernel, so that tests and the simulator can replace them',
    run: (context) => {
      const args = [
        'lint',
        '--error-on-warnings',
        '--max-diagnostics=50',
        ...banRules.map((rule) => `--only=${rule}`),
        'src',
      ]
      return tool(context, packageScript(context.root, '@biomejs/biome'), args)
    },
  },
  {
    name: 'types',
    why: 'sources, tests, examples and tools compile strictly, and declarations need no inference',
    run: types,
  },
  {
    name: 'dependencies',
    why: 'modules depend one way, are entered by their index, and form no cycle, type imports included',
    run: (context) =>
      tool(context, packageScript(context.root, 'dependency-cruiser', 'depcruise'), [
        '--output-type',
        'err-long',
        'src',
      ]),
  },
  {
    name: 'dead-code',
    why: 'no file, export or dependency that nothing uses',
    run: (context) => tool(context, packageScript(context.root, 'knip'), ['--no-progress']),
  },
  {
    name: 'lock-files',
    why: 'installs work through any registry and give what package.json says',
    run: async ({ root }) => {
      const locks = repositoryFiles(root).filter((path) => /(^|\/)package-lock\.json$/.test(path))
      refuseAny(locks.flatMap((path) => lockFileProblems(root, path)))
    },
  },
  {
    name: 'tidy',
    why: 'the laws of form hold: names, sizes, comments, tests, links, error codes',
    run: async ({ root }) => (await import('./tidy.mjs')).tidy(root),
  },
  {
    name: 'api-reference',
    why: 'the API reference is complete and says what the sources say now',
    run: async ({ root }) => {
      const stale = await (await import('./api-reference.mjs')).staleApiPages(root)
      if (stale.length > 0) throw new Refusal(`${stale.join('\n')}\n\nRun npm run docs and commit the result.`)
    },
  },
  {
    name: 'sizes',
    why: 'what a user loads through each entry point stays small; limits are in .size-limit.mjs',
    run: async (context) => {
      await ensureBuilt(context.root)
      return tool(context, packageScript(context.root, 'size-limit'), [])
    },
  },
  {
    name: 'package-contents',
    why: 'the tarball holds the built files and the pages, nothing else',
    run: async (context) => refuseAny(contentProblems(context.root, await context.packed())),
  },
  {
    name: 'publish',
    why: 'npm would publish it as it is, under the newest heading of CHANGELOG.md, with links that work in the tarball',
    run: async (context) => {
      const { publishProblems } = await import('./publishing.mjs')
      refuseAny(await publishProblems(context.root, await context.packed()))
    },
  },
  {
    name: 'package-manifest',
    why: 'package.json describes the tarball correctly for every resolver (publint)',
    run: async (context) =>
      tool(context, packageScript(context.root, 'publint'), ['run', (await context.packed()).tarball, '--strict']),
  },
  {
    name: 'package-types',
    why: 'declarations match the code for every way of resolving modules (attw)',
    run: async (context) => {
      const script = packageScript(context.root, '@arethetypeswrong/cli', 'attw')
      return tool(context, script, [
        (await context.packed()).tarball,
        '--profile',
        'esm-only',
        '--format',
        'ascii',
        '--no-emoji',
      ])
    },
  },
  {
    name: 'entry-points',
    why: 'installed into an empty project, every entry point loads with import and require, types included',
    run: entryPoints,
  },
]

/** @param {string} root @returns {{ context: Context, folder: () => Promise<string | undefined> }} */
export function newContext(root) {
  /** @type {ReturnType<Context['packed']> | undefined} */
  let packing
  const packed = () => {
    packing ??= ensureBuilt(root).then(() => pack(root))
    return packing
  }
  const folder = async () => (await packing?.catch(() => undefined))?.folder
  return { context: { root, packed }, folder }
}
