// `npm run test:matrix`: the rest of the cells: those that take too long for `npm test`, and the tests again on other
// versions of Node and PostgreSQL. Each cell is run or says why it was not.

import { join } from 'node:path'
import { longCells, poolerCells } from './cells.mjs'
import { ensureInstalled } from './install.mjs'
import { newerPgbouncer, newerProgram } from './newer-debian.mjs'
import { nodeVersions, otherNode } from './node-versions.mjs'
import { otherPostgres, postgresVersions } from './postgres-versions.mjs'
import { say } from './process.mjs'
import { closingLine, missingFor, runTests } from './test.mjs'

/** The parts of the tests that depend on the version of Node; the tests of the tools do not. */
const suites = [
  { name: 'package', args: ['--project=package'] },
  { name: 'unit', args: ['--project=unit'] },
  { name: 'stores', args: ['--project=stores'] },
]

/** The part that depends on the version of the database. */
const storeSuites = suites.filter(({ name }) => name === 'stores')

/** What `npm test` leaves out on this Node. */
const longSuites = [{ name: 'long', args: ['--project=stores', ...longCells] }]

/** What is made of packages that are too large for `npm test`: every app of a new user, and the recipes for Jest. */
const appSuites = [
  { name: 'apps', args: ['--project=stores', 'test/e2e/apps/'] },
  { name: 'jest', args: ['--project=package', 'test/package/commonjs.test.ts'] },
]

/** What platforms that are too large for `npm test` are needed for. */
const platformSuites = [{ name: 'platforms', args: ['--project=stores', 'test/e2e/platforms/'] }]

/** What a pooler is needed for. */
const poolerSuites = [{ name: 'pooler', args: ['--project=stores', ...poolerCells] }]

/** @typedef {{ on: string, suite: string, state: 'passed' | 'failed' | 'refused', says: string }} Cell */

/**
 * Runs some suites with what was found, or says why not.
 * @param {string} root
 * @param {string} on what the cells are about
 * @param {typeof suites} chosen
 * @param {{ node?: string, env?: NodeJS.ProcessEnv } | { why: string }} found
 * @returns {Promise<Cell[]>}
 */
async function cellsOf(root, on, chosen, found) {
  /** @type {Cell[]} */
  const cells = []
  for (const suite of chosen) {
    if ('why' in found) {
      cells.push({ on, suite: suite.name, state: 'refused', says: found.why })
      continue
    }
    say(`running ${suite.name} on ${on} ...`)
    /** @type {Buffer[]} */
    const chunks = []
    const startedMs = performance.now()
    const result = await runTests(root, suite.args, { ...found, show: (chunk) => chunks.push(chunk) })
    if (result.code !== 0) process.stdout.write(Buffer.concat(chunks))
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(0)
    const state = result.failed === 0 ? 'passed' : 'failed'
    cells.push({ on, suite: suite.name, state, says: `${closingLine(result)} (${seconds} s)` })
  }
  return cells
}

const whyNot = (/** @type {Error} */ error) => ({ why: String(error.message) })

/** @param {string} root @param {number} major @param {NodeJS.ProcessEnv} env */
async function nodeCells(root, major, env) {
  const found = await otherNode(root, major).catch(whyNot)
  return cellsOf(root, `Node ${major}`, suites, 'why' in found ? found : { node: found.binary, env })
}

/** @param {string} root @param {number} major @param {NodeJS.ProcessEnv} env */
async function postgresCells(root, major, env) {
  const found = await otherPostgres(root, major).catch(whyNot)
  const chosen = 'why' in found ? found : { env: { ...env, REPRISE_POSTGRES_BIN: found.bin } }
  return cellsOf(root, `PostgreSQL ${major}`, storeSuites, chosen)
}

/** @param {string} root @param {NodeJS.ProcessEnv} env */
async function appCells(root, env) {
  const installed = ensureInstalled(root, join(root, 'tools', 'app-packages'))
  const found = await installed.then(() => ({ env: { ...env, REPRISE_LONG: 'true' } }), whyNot)
  return cellsOf(root, 'this Node', appSuites, found)
}

/** @param {string} root @param {NodeJS.ProcessEnv} env */
async function platformCells(root, env) {
  const { platform, arch } = process
  const installed =
    platform === 'linux' && arch === 'x64'
      ? ensureInstalled(root, join(root, 'tools', 'platform-packages')).then(() => ({
          env: { ...env, REPRISE_LONG: 'true' },
        }))
      : Promise.reject(new Error(`tools/platform-packages has no workerd for ${platform}-${arch}`))
  return cellsOf(root, 'this Node', platformSuites, await installed.catch(whyNot))
}

/** @param {string} root @param {NodeJS.ProcessEnv} env */
async function pgbouncerCells(root, env) {
  const found = await newerProgram(root, newerPgbouncer).catch(whyNot)
  const chosen = 'why' in found ? found : { env: { ...env, REPRISE_PGBOUNCER: found.program } }
  return cellsOf(root, 'PgBouncer 1.24', poolerSuites, chosen)
}

/**
 * @param {string} root
 * @param {readonly string[]} args `long`, `apps`, `platforms`, `pgbouncer`, and major versions: of Node as they are, of PostgreSQL
 *   as postgres-18; default: all
 * @returns {Promise<number>}
 */
export async function matrix(root, args) {
  const nodes = nodeVersions(root)
  const databases = postgresVersions(root)
  /** @type {Map<string, (env: NodeJS.ProcessEnv) => Promise<Cell[]>>} */
  const names = new Map()
  names.set('long', (env) => cellsOf(root, 'this Node', longSuites, { env: { ...env, REPRISE_LONG: 'true' } }))
  names.set('apps', (env) => appCells(root, env))
  names.set('platforms', (env) => platformCells(root, env))
  names.set('pgbouncer', (env) => pgbouncerCells(root, env))
  for (const major of nodes) names.set(String(major), (env) => nodeCells(root, major, env))
  for (const major of databases) names.set(`postgres-${major}`, (env) => postgresCells(root, major, env))
  const unknown = args.filter((arg) => !names.has(arg))
  if (unknown.length > 0) {
    say(`There is nothing named ${unknown.join(', ')} to test on; there are ${[...names.keys()].join(', ')}.`)
    return 2
  }
  const env = await missingFor(root, [])
  const cells = []
  for (const [name, cellsFor] of names) {
    if (args.length === 0 || args.includes(name)) cells.push(...(await cellsFor(env)))
  }
  console.log('')
  for (const { on, suite, state, says } of cells) {
    console.log(`${on.padEnd(14)} ${suite.padEnd(9)} ${state.padEnd(8)} ${says}`)
  }
  return cells.some((cell) => cell.state === 'failed') ? 1 : 0
}
