// The real servers that the tests need: found on this machine, or installed from Debian's packages before vitest starts.
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
 * The folder with PostgreSQL's programs: REPRISE_POSTGRES_BIN where it is set, else that of the `postgres` on the path, else Debian's newest.
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

/** Where a browser is that the tests can drive: Chromium, as Debian and others call it, or undefined. @returns {string | undefined} */
export function findChromium() {
  return ['chromium', 'chromium-browser', 'google-chrome'].map(findProgram).find((path) => path !== undefined)
}

/** @typedef {{ what: string, package: string, find: () => string | undefined }} Needed what it is, Debian's package, how it is found */

/** What the tests need. @type {readonly Needed[]} */
const needed = [
  { what: 'PostgreSQL', package: 'postgresql', find: findPostgres },
  { what: 'PgBouncer', package: 'pgbouncer', find: () => findProgram('pgbouncer') },
  { what: 'strace', package: 'strace', find: () => findProgram('strace') },
  { what: 'Chromium', package: 'chromium', find: findChromium },
]

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
  return projects.length === 0 || projects.some((name) => !['unit', 'package', 'tools'].includes(name))
}

/**
 * Makes sure that every server is there. What is missing is installed where we may (root on Debian); elsewhere the run fails with
 * the names of the packages, because a test that is left out in silence proves nothing.
 * @param {string} root
 * @param {readonly Needed[]} [wanted] default: what the tests need
 */
export async function ensureServers(root, wanted = needed) {
  const missing = () => wanted.filter(({ find }) => find() === undefined)
  if (missing().length === 0) return
  await oneAtATime(join(root, '.cache', 'servers.lock'), 'installing servers', async () => {
    const packages = missing().map((server) => server.package)
    if (packages.length === 0) return
    const aptGet = findProgram('apt-get')
    if (aptGet === undefined || process.getuid?.() !== 0) {
      const names = missing().map((server) => server.what)
      throw new Refusal(
        `The tests need ${names.join(', ')}. Install the Debian packages ${packages.join(', ')}, or their like, and run again.`,
      )
    }
    say(`installing ${packages.join(', ')} ...`)
    await apt(aptGet, ['update'])
    await apt(aptGet, ['install', '-y', '--no-install-recommends', ...packages])
    const still = missing().map((server) => server.what)
    if (still.length > 0) throw new Refusal(`${still.join(', ')} cannot be found, although apt-get installed it.`)
  })
}
