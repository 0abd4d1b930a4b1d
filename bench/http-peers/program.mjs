// The program of a peer's subject: its sources, where they come from a repository, at exactly the commit that was
// named, bundled with its mount.

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const here = fileURLToPath(new URL('.', import.meta.url))

const git = (/** @type {readonly string[]} */ ...args) =>
  execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()

/**
 * Clones the sources once. Who has no way to GitHub sends git elsewhere by its own setting `url.<base>.insteadOf`.
 * @param {{ repository: string, tag: string, commit: string }} source
 */
function fetchSource({ repository, tag, commit }) {
  const folder = join(here, '.cache', commit)
  if (existsSync(folder)) return folder
  const fresh = `${folder}.${process.pid}`
  mkdirSync(dirname(fresh), { recursive: true })
  git('clone', '--quiet', '--depth', '1', '--branch', tag, `https://github.com/${repository}`, fresh)
  const found = git('-C', fresh, 'rev-parse', 'HEAD')
  if (found !== commit) {
    rmSync(fresh, { recursive: true })
    throw new Error(`${repository}: ${tag} is ${found}, and was ${commit} when this list was written`)
  }
  renameSync(fresh, folder)
  return folder
}

/**
 * Bundles the subject of a peer, and answers where the program is. What it imports from npm is found in the folders
 * above it.
 * @param {{ name: string, subject: string, source?: { repository: string, tag: string, commit: string, modules:
 *   Record<string, string> } }} peer
 * @param {Record<string, string>} [installed] modules that are installed elsewhere, and where
 */
export async function peerProgram({ name, subject, source }, installed = {}) {
  const folder = source === undefined ? '' : fetchSource(source)
  const sources = Object.entries(source?.modules ?? {}).map(([module, path]) => [module, join(folder, path)])
  const outdir = join(here, '.cache', 'programs', name)
  await build({
    entryPoints: { main: join(here, subject) },
    outdir,
    outExtension: { '.js': '.mjs' },
    alias: { ...Object.fromEntries(sources), ...installed },
    external: Object.values(installed),
    // The settings of a peer's own repository ask for packages that are not there.
    ...(source !== undefined && { tsconfigRaw: {} }),
    bundle: true,
    splitting: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'error',
  })
  return join(outdir, 'main.mjs')
}
