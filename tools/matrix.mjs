// `npm run test:matrix`: the tests again on other versions of Node. Each cell is run or says why it was not.

import { nodeVersions, otherNode } from './node-versions.mjs'
import { say } from './process.mjs'
import { closingLine, runTests } from './test.mjs'

/** The parts of the tests that depend on the version of Node; the tests of the tools do not. */
const suites = [
  { name: 'doors', args: ['--project=package'] },
  { name: 'unit', args: ['--project=unit'] },
]

/** @typedef {{ node: string, suite: string, state: 'passed' | 'failed' | 'refused', says: string }} Cell */

/**
 * @param {string} root
 * @param {number} major
 * @returns {Promise<Cell[]>}
 */
async function cellsOf(root, major) {
  const node = `Node ${major}`
  const found = await otherNode(root, major).catch((error) => ({ why: String(error.message) }))
  /** @type {Cell[]} */
  const cells = []
  for (const suite of suites) {
    if ('why' in found) {
      cells.push({ node, suite: suite.name, state: 'refused', says: found.why })
      continue
    }
    say(`running ${suite.name} on ${node} ...`)
    /** @type {Buffer[]} */
    const chunks = []
    const startedMs = performance.now()
    const result = await runTests(root, suite.args, { node: found.binary, show: (chunk) => chunks.push(chunk) })
    if (result.code !== 0) process.stdout.write(Buffer.concat(chunks))
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(0)
    const state = result.failed === 0 ? 'passed' : 'failed'
    cells.push({ node, suite: suite.name, state, says: `${closingLine(result)} (${seconds} s)` })
  }
  return cells
}

/** @param {string} root @param {readonly string[]} args major versions; default: all @returns {Promise<number>} */
export async function matrix(root, args) {
  const all = nodeVersions(root)
  const unknown = args.filter((arg) => !all.includes(Number(arg)))
  if (unknown.length > 0) {
    say(`There is no Node ${unknown.join(', ')} here; there are ${all.join(', ')}.`)
    return 2
  }
  const cells = []
  for (const major of args.length > 0 ? args.map(Number) : all) cells.push(...(await cellsOf(root, major)))
  console.log('')
  for (const { node, suite, state, says } of cells) {
    console.log(`${node.padEnd(9)} ${suite.padEnd(7)} ${state.padEnd(8)} ${says}`)
  }
  return cells.some((cell) => cell.state === 'failed') ? 1 : 0
}
