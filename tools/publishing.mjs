// Whether `npm publish` would take the package as it is, asked without a network and without publishing anything.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readPackage } from './entry-points.mjs'
import { runNpm } from './install.mjs'
import { linksResolve } from './tidy/documents.mjs'
import { treeOfTexts } from './tidy/tree.mjs'

/** What only a clone has. Pages of the tarball may lead there, README may not: it is read where there is no clone. */
const inTheClone = /^(?!README\.md:)\S+: (\.\.\/)*((src|test|examples)\/|(reference\/)?api\/)\S* leads nowhere$/

/** Links of the pages in the tarball that lead to nothing in it. @param {string} root @param {readonly string[]} paths */
function deadLinks(root, paths) {
  const texts = paths.map((path) => [path, path.endsWith('.md') ? readFileSync(join(root, path), 'utf8') : ''])
  const found = linksResolve(treeOfTexts(Object.fromEntries(texts)))
  return found.filter((problem) => !inTheClone.test(problem)).map((problem) => `${problem} in the tarball`)
}

/** What `npm publish` warns of and refuses, but for that nobody is logged in. */
async function dryRunProblems(/** @type {string} */ root) {
  const args = ['publish', '--dry-run', '--offline', '--ignore-scripts', '--loglevel=warn']
  const { code, output } = await runNpm(args, { cwd: root, quiet: true })
  const complaints = output
    .split('\n')
    .filter(
      (line) =>
        /^npm (warn (publish|package-json)|error) /.test(line) && !line.includes('requires you to be logged in'),
    )
  if (code !== 0 && complaints.length === 0) return [`npm publish --dry-run ended with code ${code}`]
  return [...new Set(complaints)]
}

/**
 * What stands in the way of publishing: [] when nothing does.
 * @param {string} root
 * @param {import('./package-project.mjs').Packed} packed
 * @returns {Promise<string[]>}
 */
export async function publishProblems(root, packed) {
  const { private: isPrivate, version } = readPackage(root)
  const newest = /^## (.+)$/m.exec(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'))?.[1]
  return [
    ...(isPrivate === undefined ? [] : ['package.json says private, which npm refuses to publish']),
    ...(newest === version
      ? []
      : [`CHANGELOG.md begins with "${newest}", and package.json has the version ${version}`]),
    ...deadLinks(
      root,
      packed.files.map(({ path }) => path),
    ),
    ...(await dryRunProblems(root)),
  ]
}
