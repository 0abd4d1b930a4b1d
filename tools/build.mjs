// Builds dist from src with tsc, when the sources are not the ones built last; the same for the examples.
//
// The output goes to a fresh folder that replaces the old one whole: files of removed sources vanish, and a build that
// fails or is killed leaves the last good one, whose stamp no longer matches.

import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { oneAtATime } from './one-at-a-time.mjs'
import { bundlePage } from './page.mjs'
import { packageScript, Refusal, runNode, say } from './process.mjs'

/** Paths of all files below a folder, relative to the root, sorted; [] when there is no such folder. */
export function filesBelow(/** @type {string} */ root, /** @type {string} */ folder) {
  try {
    const entries = readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    const prefix = join(root, '/').length
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(prefix))
      .sort()
  } catch {
    return []
  }
}

/** Hash of paths and contents, as a line. */
export function hashOf(/** @type {string} */ root, /** @type {readonly string[]} */ paths) {
  const hash = createHash('sha256')
  for (const path of paths) {
    const bytes = readFileSync(join(root, path))
    hash.update(`${path}\0${bytes.length}\0`).update(bytes)
  }
  return `${hash.digest('hex')}\n`
}

function read(/** @type {string} */ path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/**
 * Compiles a project into a folder when the stamp in that folder is not the wanted one.
 * @param {string} root
 * @param {{ project: string, out: string, stamp: () => string, doing: string, also?: (fresh: string) => Promise<void>
 *   }} what
 */
async function compile(root, { project, out, stamp, doing, also }) {
  const stampPath = join(root, out, '.stamp')
  if (read(stampPath) === stamp()) return
  await oneAtATime(join(root, '.cache', 'build.lock'), doing, async () => {
    const wanted = stamp()
    if (read(stampPath) === wanted) return
    say(`${doing} ...`)
    const fresh = join(root, '.cache', `out-${process.pid}`)
    rmSync(fresh, { recursive: true, force: true })
    mkdirSync(fresh, { recursive: true })
    // Not incremental: an incremental build skips unchanged files, and the fresh folder would lack them.
    const args = ['-p', project, '--outDir', fresh, '--incremental', 'false', '--tsBuildInfoFile', 'null']
    const { code, output } = await runNode(packageScript(root, 'typescript', 'tsc'), args, { cwd: root, quiet: true })
    if (code !== 0) {
      rmSync(fresh, { recursive: true, force: true })
      throw new Refusal(`${output.trim()}\n\n${doing} failed: tsc -p ${project} ended with code ${code}.`)
    }
    await also?.(fresh)
    writeFileSync(join(fresh, '.stamp'), wanted)
    rmSync(join(root, out), { recursive: true, force: true })
    renameSync(fresh, join(root, out))
  })
}

const isBuilt = (/** @type {string} */ path) => !/\.(test|fuzz)\.ts$/.test(path)

function sourcesStamp(/** @type {string} */ root) {
  return hashOf(root, [
    ...filesBelow(root, 'src').filter(isBuilt),
    'package-lock.json',
    'tsconfig.build.json',
    'tsconfig.json',
  ])
}

/** Makes sure that dist is built from the sources as they are. */
export function ensureBuilt(/** @type {string} */ root) {
  return compile(root, {
    project: 'tsconfig.build.json',
    out: 'dist',
    doing: 'building dist',
    stamp: () => sourcesStamp(root),
  })
}

/**
 * Makes sure that the examples are compiled, types checked, against dist as it is, and the page of one is bundled. The
 * answer is their folder.
 */
export async function ensureExamplesBuilt(/** @type {string} */ root) {
  const out = join('.cache', 'examples')
  await compile(root, {
    project: join('tools', 'tsconfig.examples.json'),
    out,
    doing: 'compiling examples',
    also: (fresh) => bundlePage(root, fresh),
    stamp: () =>
      sourcesStamp(root) +
      hashOf(root, [
        ...filesBelow(root, 'examples'),
        ...filesBelow(root, 'docs/guides'),
        'tools/tsconfig.examples.json',
      ]),
  })
  return join(root, out)
}
