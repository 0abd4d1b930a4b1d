// The real servers that the tests need: found on this machine, or installed from Debian's packages before vitest
// starts.
//
// Only commands call `ensureServers`, never a test: several workers at once would fight for the package manager's lock.

import { accessSync, constants, existsSync, readdirSync, realpathSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { oneAtATime } from './one-at-a-time.mjs'
import { Refusal, run, say } from './process.mjs'

const debianPostgres = '/usr/lib/postgresql'

/** Folders that hold servers and are not on every user's path. */
const serverFolders = ['/usr/sbin', '/usr/local/sbin', '/sbin']

function isExecutable(/** @type {string} */ path) {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Where a program is, or undefined. @param {string} name @returns {string | undefined} */
export function findProgram(name) {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter).filter(Boolean), ...serverFolders]
  return folders.map((folder) => join(folder, name)).find(isExecutable)
}

/** A folder counts when it can make a data folder and serve it. */
const isPostgresFolder = (/** @type {string} */ folder) =>
  ['initdb', 'postgres'].every((name) => isExecutable(join(folder, name)))

/**
 * The folder with PostgreSQL's programs: REPRISE_POSTGRES_BIN where it is set, else that of the `postgres` on the path,
 * else Debian's newest.
 * @returns {string | undefined}
 */
export function findPostgres() {
  const chosen = process.env['REPRISE_POSTGRES_BIN']
  if (chosen !== undefined && chosen !== '') {
    if (isPostgresFolder(chosen)) return chosen
    throw new Refusal('REPRISE_POSTGRES_BIN names a folder without an initdb and a postgres that can be run.')
  }
  const program = findProgram('postgres')
  const onPath = program === undefined ? undefined : dirname(realpathSync(program))
  if (onPath !== undefined && isPostgresFolder(onPath)) return onPath
  const majors = existsSync(debianPostgres) ? readdirSync(debianPostgres).filter((name) => /^\d+$/.test(name)) : []
  const newestFirst = majors.sort((a, b) => Number(b) - Number(a))
  return newestFirst.map((major) => join(debianPostgres, major, 'bin')).find(isPostgresFolder)
}

/**
 * Where PgBouncer is: REPRISE_PGBOUNCER where it is set, else the one on the path.
 * @returns {string | undefined}
 */
export function findPgbouncer() {
  const chosen = process.env['REPRISE_PGBOUNCER']
  if (chosen === undefined || chosen === '') return findProgram('pgbouncer')
  if (isExecutable(chosen)) return chosen
  throw new Refusal('REPRISE_PGBOUNCER names no program that can be run.')
}

/**
 * Where a browser is that the tests can drive: Chromium, as Debian and others call it, or undefined.
 * @returns {string | undefined}
 */
export function findChromium() {
  return ['chromium', 'chromium-browser', 'google-chrome'].map(findProgram).find((path) => path !== undefined)
}

/**
 * @typedef {{ what: string, package: string, find: () => string | undefined }} Needed what it is, Debian's package, how
 *   it is found
 */

/** What the tests need. @type {readonly Needed[]} */
const needed = [
  { what: 'PostgreSQL', package: 'postgresql', find: findPostgres },
  { what: 'PgBouncer', package: 'pgbouncer', find: findPgbouncer },
  { what: 'strace', package: 'strace', find: () => findProgram('strace') },
  { what: 'Chromium', package: 'chromium', find: findChromium },
]

/** What is needed of these. @param {readonly string[]} names @returns {readonly Needed[]} */
export function serversNamed(names) {
  return needed.filter(({ what }) => names.includes(what))
}

/** @typedef {{ what: string, why: string }} Missing what is not there, and why it could not be installed */

/** @param {string} aptGet @param {readonly string[]} args */
async function apt(aptGet, args) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const { code, output } = await run(aptGet, args, { quiet: true, env })
  if (code !== 0) throw new Refusal(`${output.trim()}\n\napt-get ${args[0]} ended with code ${code}.`)
}

/** Whether tests chosen by these arguments of vitest need servers. @param {readonly string[]} args */
export function needServers(args) {
  const projects = args.flatMap((arg, index) => {
    if (arg === '--project') return [args[index + 1] ?? '']
    return arg.startsWith('--project=') ? [arg.slice('--project='.length)] : []
  })
  return projects.length === 0 || projects.some((name) => !['unit', 'tools'].includes(name))
}

/**
 * Names of servers that are treated as missing, from the environment; it shows what a machine without them would say.
 */
function leftOut() {
  const names = (process.env['REPRISE_WITHOUT'] ?? '').split(',').map((name) => name.trim())
  return new Set(names.filter((name) => name !== ''))
}

/**
 * Installs the servers that are missing, where we may: as root on Debian. The answer is what is missing still.
 * @param {string} root
 * @param {readonly Needed[]} [wanted] default: what the tests need
 * @returns {Promise<Missing[]>}
 */
export async function missingServers(root, wanted = needed) {
  const without = leftOut()
  const missing = () => wanted.filter(({ what, find }) => !without.has(what) && find() === undefined)
  let why = ''
  if (missing().length > 0) {
    await oneAtATime(join(root, '.cache', 'servers.lock'), 'installing servers', async () => {
      why = await installPackages(missing().map((server) => server.package))
    })
  }
  return [
    ...wanted
      .filter(({ what }) => without.has(what))
      .map(({ what }) => ({ what, why: 'REPRISE_WITHOUT leaves it out' })),
    ...missing().map(({ what, package: name }) => ({ what, why: `Debian's package ${name} is not installed; ${why}` })),
  ]
}

/**
 * Installs packages of Debian. The answer says why that could not be done; of no interest where it could.
 * @param {readonly string[]} packages
 */
async function installPackages(packages) {
  if (packages.length === 0) return ''
  const aptGet = findProgram('apt-get')
  if (aptGet === undefined) return 'there is no apt-get here'
  if (process.getuid?.() !== 0) return 'only root can install it'
  say(`installing ${packages.join(', ')} ...`)
  try {
    await apt(aptGet, ['update'])
    await apt(aptGet, ['install', '-y', '--no-install-recommends', ...packages])
    return 'apt-get installed it, and yet it cannot be found'
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    say(error.message)
    return error.message.split('\n').at(-1) ?? ''
  }
}

/**
 * Makes sure that every server is there, for work that makes no sense without them.
 * @param {string} root
 * @param {readonly Needed[]} [wanted] default: what the tests need
 */
export async function ensureServers(root, wanted = needed) {
  const missing = await missingServers(root, wanted)
  if (missing.length > 0) throw new Refusal(missing.map(({ what, why }) => `${what} is missing: ${why}.`).join('\n'))
}
