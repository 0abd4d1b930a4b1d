// The entry points of the package, read from the one place that defines them: `exports` in package.json.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * @typedef {object} EntryPoint
 * @property {string} name as in `exports`: '.', './kernel'
 * @property {string} specifier as in an import: 'reprise', 'reprise/kernel'
 * @property {string} script the built file
 * @property {string} types its declarations
 * @property {string} source the file it is built from
 */

export function readPackage(/** @type {string} */ root) {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
}

/** @returns {EntryPoint[]} every entry point that leads to code; './package.json' is data */
export function entryPointsOf(/** @type {string} */ root) {
  const { name: packageName, exports } = readPackage(root)
  return Object.entries(exports)
    .filter(([, target]) => typeof target === 'object')
    .map(([name, target]) => ({
      name,
      specifier: packageName + name.slice(1),
      script: target.default.slice(2),
      types: target.types.slice(2),
      source: target.default.replace(/^\.\/dist\//, 'src/').replace(/\.js$/, '.ts'),
    }))
}
