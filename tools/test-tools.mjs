// `npm run test:tools`: the tests of the tooling itself. When all of them pass, a hash of what they test is written
// into .ci/tools-tested, which is committed: where the hash still holds, .ci/run need not run them again.
//
// A hash and not a diff: a clone made for a single run knows no branch to compare with.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hashOf } from './build.mjs'
import { repositoryFiles } from './repository-files.mjs'
import { closingLine, runTests } from './test.mjs'
import { reportOf } from './test-report.mjs'

const stampPath = '.ci/tools-tested'

/** What the tests of the tools are about: tools, their tests, benches, the recipes, and every file of configuration. */
const tested =
  /^(?:(?:tools|test\/tools|bench|\.ci)\/.+|CONTRIBUTING\.md|package(?:-lock)?\.json|tsconfig[^/]*\.json|biome\.json|knip\.json|typedoc\.json|vitest\.config\.ts|\.npmrc|\.[\w-]+\.mjs)$/

function currentStamp(/** @type {string} */ root) {
  const paths = repositoryFiles(root).filter((path) => tested.test(path) && path !== stampPath)
  return hashOf(root, paths)
}

function committedStamp(/** @type {string} */ root) {
  try {
    return readFileSync(join(root, stampPath), 'utf8')
  } catch {
    return undefined
  }
}

/**
 * @param {string} root
 * @param {readonly string[]} given arguments of vitest; --if-changed: nothing is run where the hash holds
 * @returns {Promise<number>}
 */
export async function testTools(root, given) {
  const args = given.filter((arg) => arg !== '--if-changed')
  const stamp = currentStamp(root)
  if (given.includes('--if-changed') && committedStamp(root) === stamp) {
    console.log('tools and configuration are as they were when the tests of the tools passed: not run again')
    console.log(closingLine({ passed: 0, failed: 0, skipped: 0 }))
    return 0
  }
  const result = await runTests(root, ['--project=tools', ...args])
  const report = reportOf(result.files ?? [], { whole: false })
  if (report !== '') console.log(`\n${report}\n`)
  if (result.note !== undefined) console.log(result.note)
  // What was chosen by arguments, or skipped, says nothing about the rest; and what changed meanwhile was not tested.
  if (result.code === 0 && result.skipped === 0 && args.length === 0 && currentStamp(root) === stamp) {
    writeFileSync(join(root, stampPath), stamp)
  }
  console.log(closingLine(result))
  return result.code
}
