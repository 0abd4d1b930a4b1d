#!/usr/bin/env node
// The one script behind every npm command: `node tools/run.mjs <command> [arguments]`.
//
// It depends on nothing but Node, so it works on a fresh clone: it installs, builds and then does the work.
// The version is looked at before anything else is loaded, so that an old Node gets a sentence and not a syntax error.

import { readFileSync } from 'node:fs'

/**
 * @typedef {{ within: boolean, major: number, minor: number }} Alternative at least this version; within: and of this
 *   major version
 */

/** Which versions will do. @type {Alternative[]} */
const alternatives = versionsIn(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

function versionsIn(/** @type {string} */ manifest) {
  const { engines = {} } = JSON.parse(manifest)
  return (engines.node || '>=0.0').split('||').map((/** @type {string} */ range) => {
    const parts = /^\s*(\^|>=)(\d+)\.(\d+)/.exec(range)
    if (parts === null) throw new Error(`package.json asks for a Node in words that are not known here: ${range}`)
    return { within: parts[1] === '^', major: Number(parts[2]), minor: Number(parts[3]) }
  })
}

function isGood(/** @type {Alternative} */ { within, major, minor }) {
  const [here = 0, minorHere = 0] = process.versions.node.split('.').map(Number)
  return here === major ? minorHere >= minor : here > major && !within
}

if (alternatives.some(isGood)) {
  import('./commands.mjs').then(async ({ main }) => {
    process.exitCode = await main(process.argv.slice(2))
  })
} else {
  const wanted = alternatives.map(({ within, major, minor }) =>
    within ? `${major}.${minor} or a newer ${major}` : `${major}.${minor} or newer`,
  )
  console.error(`Reprise needs Node ${wanted.join(', or ')}; this is Node ${process.versions.node}.`)
  if (process.argv[2] === 'test') console.log('0 passed, 1 failed, 0 skipped')
  process.exitCode = 1
}
