// A program of a newer Debian than the one that runs here, for the matrix. It is fetched by an apt-get with folders of
// its own, so that no package of this system changes; this system's own keys check the signatures; and it runs with the
// libraries that came with it, by their own loader.

import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { oneAtATime } from './one-at-a-time.mjs'
import { run, say } from './process.mjs'
import { findProgram } from './servers.mjs'

const keys = '/usr/share/keyrings/debian-archive-keyring.gpg'

/** @typedef {{ release: string, package: string, program: string }} Newer a release of Debian, a package, a path in it */

/** PgBouncer 1.24: it knows the prepared statements of its clients, which 1.18 of Debian 12 does not. @type {Newer} */
export const newerPgbouncer = { release: 'trixie', package: 'pgbouncer', program: 'usr/sbin/pgbouncer' }

/** The address that this system's own packages come from, or undefined where it is no Debian. */
async function mirror() {
  const codename = existsSync('/etc/os-release')
    ? /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1]
    : undefined
  const { code, output } = await run('apt-get', ['indextargets', '--format', '$(REPO_URI) $(RELEASE)'], { quiet: true })
  if (code !== 0 || codename === undefined) return undefined
  const ours = output.split('\n').map((line) => line.split(' '))
  return ours.find(([, release]) => release === codename)?.[0]
}

/** @param {string} folder of the second apt-get @param {readonly string[]} args */
function apt(folder, args) {
  const at = (/** @type {string} */ name) => join(folder, name)
  const settings = {
    'Dir::State': at('state'),
    'Dir::State::status': at('status'),
    'Dir::Cache': at('cache'),
    'Dir::Etc': at('etc'),
    'Dir::Etc::sourcelist': at('etc/sources.list'),
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::Log': at('log'),
    'APT::Sandbox::User': 'root',
    'Debug::NoLocking': '1',
  }
  const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  return run('apt-get', [...options, ...args], { quiet: true, env })
}

/**
 * Fetches and unpacks, and answers why that could not be done.
 * @param {string} folder of the second apt-get
 * @param {string} unpacked where it is to be
 * @param {Newer} wanted
 * @param {string} from
 * @returns {Promise<string | undefined>}
 */
async function fetchInto(folder, unpacked, wanted, from) {
  const archives = join(folder, 'cache', 'archives')
  for (const name of ['state/lists/partial', 'cache/archives/partial', 'etc/apt.conf.d', 'etc/preferences.d', 'log']) {
    mkdirSync(join(folder, name), { recursive: true })
  }
  writeFileSync(join(folder, 'status'), '')
  writeFileSync(join(folder, 'etc', 'sources.list'), `deb [signed-by=${keys}] ${from} ${wanted.release} main\n`)
  const install = ['install', '-y', '--no-install-recommends', '--download-only', wanted.package]
  for (const args of [['update'], install]) {
    const { code } = await apt(folder, args)
    if (code !== 0) return `apt-get ${args[0]} of Debian ${wanted.release} ended with code ${code}`
  }
  for (const name of readdirSync(archives).filter((file) => file.endsWith('.deb'))) {
    const { code } = await run('dpkg', ['-x', join(archives, name), unpacked], { quiet: true })
    if (code !== 0) return `dpkg could not unpack ${name}`
  }
  return undefined
}

/**
 * Where a program of a newer Debian is that anybody on this machine can run, or why there is none.
 * @param {string} root
 * @param {Newer} wanted
 * @returns {Promise<{ program: string } | { why: string }>}
 */
export async function newerProgram(root, wanted) {
  const { release, package: name } = wanted
  if (`${process.platform}-${process.arch}` !== 'linux-x64') return { why: 'it is set up here for linux-x64 only' }
  if (!['apt-get', 'dpkg'].every(findProgram)) return { why: 'it comes from packages of Debian' }
  if (!existsSync(keys)) return { why: "Debian's package debian-archive-keyring is not installed" }
  // For the user that runs servers, who may not be let into the folder of the repository.
  const home = join(tmpdir(), `reprise-${release}-${name}`)
  const script = join(home, name)
  return oneAtATime(join(root, '.cache', `${release}-${name}.lock`), `fetching ${name}`, async () => {
    if ((await run(script, ['--version'], { quiet: true })).code === 0) return { program: script }
    const from = await mirror()
    if (from === undefined) return { why: 'this system does not say where its packages come from' }
    say(`fetching ${name} of Debian ${release} ...`)
    const fresh = `${home}-${process.pid}`
    const folder = join(root, '.cache', `${release}-apt`)
    const why = await fetchInto(folder, fresh, wanted, from)
    rmSync(folder, { recursive: true, force: true })
    if (why !== undefined) {
      rmSync(fresh, { recursive: true, force: true })
      return { why }
    }
    const libraries = join(home, 'usr/lib/x86_64-linux-gnu')
    const loader = join(libraries, 'ld-linux-x86-64.so.2')
    const line = `exec "${loader}" --library-path "${libraries}" "${join(home, wanted.program)}" "$@"`
    writeFileSync(join(fresh, name), `#!/bin/sh\n${line}\n`)
    chmodSync(join(fresh, name), 0o755)
    rmSync(home, { recursive: true, force: true })
    renameSync(fresh, home)
    const { code } = await run(script, ['--version'], { quiet: true })
    return code === 0 ? { program: script } : { why: `${name} of Debian ${release} does not run here` }
  })
}
