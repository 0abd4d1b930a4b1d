// Installs a folder's dependencies from its lock file, when the lock file is not the one installed last.
//
// The stamp lies inside node_modules and is written last. `npm ci` begins by removing node_modules, so an installation
// that was interrupted leaves no stamp and is done again.

import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { oneAtATime } from './one-at-a-time.mjs'
import { Refusal, run, say } from './process.mjs'

/** Settings that would make `npm ci` leave something out, do nothing, or work elsewhere. */
const unwanted =
  /^npm_config_(omit|include|only|also|production|dev|dry_run|global|location|package_lock.*|workspaces?|ignore_scripts)$/i

function installEnvironment() {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !unwanted.test(name)))
}

/**
 * The text of the stamp: native packages differ by Node's major version and by platform, programs by platform alone.
 * @param {string} directory
 * @param {boolean} isProgram
 */
function stampOf(directory, isProgram) {
  const lock = createHash('sha256')
    .update(readFileSync(join(directory, 'package-lock.json')))
    .digest('hex')
  const node = isProgram ? '' : ` node${process.versions.node.split('.')[0]}`
  return `${lock}${node} ${process.platform}-${process.arch}\n`
}

function installedStamp(/** @type {string} */ directory) {
  try {
    return readFileSync(join(directory, 'node_modules', '.reprise-lock'), 'utf8')
  } catch {
    return undefined
  }
}

/** How to start npm: the one that started us, if it did, else the one on the path. */
function npm() {
  const started = process.env['npm_execpath']
  return started?.endsWith('npm-cli.js')
    ? { program: process.execPath, first: [started] }
    : { program: 'npm', first: [] }
}

/** @param {readonly string[]} args @param {import('./process.mjs').ChildOptions} options */
export function runNpm(args, options) {
  const { program, first } = npm()
  return run(program, [...first, ...args], { env: installEnvironment(), ...options })
}

/** One sentence for the usual reasons why `npm ci` fails. */
function reasonFor(/** @type {string} */ output, /** @type {number} */ code) {
  if (code === 127) return 'npm was not found; it comes with Node.'
  if (/code EUSAGE/.test(output))
    return 'package.json and package-lock.json do not agree: run `npm install` and commit both.'
  if (/code EINTEGRITY/.test(output)) return 'a download does not match the lock file.'
  if (/code E(AI_AGAIN|NOTFOUND|CONNREFUSED|TIMEDOUT|CONNRESET)|ENOTCACHED/.test(output))
    return 'the package registry cannot be reached.'
  if (/code ENOSPC/.test(output)) return 'the disk is full.'
  return `npm ci ended with code ${code}.`
}

function isSymbolicLink(/** @type {string} */ path) {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true
}

/**
 * Makes sure that a folder's node_modules is what its lock file says.
 * @param {string} root the repository, for messages
 * @param {string} [directory] the folder with the lock file; default: the repository itself
 * @param {{ isProgram?: boolean }} [options] isProgram: it holds a program, which is the same for every Node. To
 *   install it anew would take it away from whoever runs it, a Node its own binary. Default false
 */
export async function ensureInstalled(root, directory = root, { isProgram = false } = {}) {
  const stamp = stampOf(directory, isProgram)
  if (installedStamp(directory) === stamp) return
  const where = relative(root, directory) || '.'
  if (isSymbolicLink(join(directory, 'node_modules'))) {
    throw new Refusal(`Not installing in ${where}: its node_modules is a link, and npm would empty what it points to.`)
  }
  await oneAtATime(join(directory, '.cache', 'install.lock'), `installing in ${where}`, async () => {
    if (installedStamp(directory) === stamp) return
    const startedMs = Date.now()
    say(`installing ${join(where, 'package-lock.json')} ...`)
    const args = ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error']
    const { code, output } = await runNpm(args, { cwd: directory, quiet: true })
    if (code !== 0) {
      throw new Refusal(`${output.trim()}\n\nInstalling in ${where} failed: ${reasonFor(output, code)}`)
    }
    mkdirSync(join(directory, 'node_modules'), { recursive: true }) // absent when there was nothing to install here
    writeFileSync(join(directory, 'node_modules', '.reprise-lock'), stamp)
    say(`installed in ${((Date.now() - startedMs) / 1000).toFixed(0)} s`)
  })
}
