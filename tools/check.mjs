// `npm run check`: runs the checks, as many at a time as there are cores, shows output only of those that fail, in the
// order of the list, and ends with a summary.

import { rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { checks, newContext } from './checks.mjs'
import { Refusal } from './process.mjs'

/** @typedef {import('./checks.mjs').Check} Check */
/** @typedef {{ check: Check, passed: boolean, seconds: number, output: string, hint: string }} Result */

const width = Math.max(...checks.map((check) => check.name.length)) + 2

function list() {
  for (const { name, why } of checks) console.log(`${name.padEnd(width)}${why}`)
}

function indented(/** @type {string} */ text) {
  return text.replace(/^(?=.)/gm, '    ')
}

/**
 * @param {Check} check
 * @param {import('./checks.mjs').Context} context
 * @returns {Promise<Result>}
 */
async function runOne(check, context) {
  const startedMs = performance.now()
  let passed = true
  let output = ''
  let hint = ''
  try {
    const answer = (await check.run(context)) ?? ''
    if (typeof answer === 'string') output = answer
    else hint = answer.hint
  } catch (error) {
    passed = false
    output = error instanceof Refusal ? error.message : String(/** @type {Error} */ (error).stack ?? error)
  }
  return { check, passed, seconds: (performance.now() - startedMs) / 1000, output, hint }
}

/** @param {Result} result @param {boolean} verbose */
function tell({ check, passed, seconds, output, hint }, verbose) {
  console.log(`${check.name.padEnd(width)}${passed ? 'ok    ' : 'FAILED'} ${seconds.toFixed(1).padStart(5)} s`)
  if (!passed) console.log(`\n    why: ${check.why}\n`)
  if (output !== '' && (!passed || verbose)) console.log(`${indented(output)}\n`)
  if (hint !== '') console.log(`\n    worth a look, and no failure:\n\n${indented(hint)}\n`)
}

/**
 * Each check keeps about one core busy. What they share, the build and the tarball, is made by the first that asks.
 * @param {readonly Check[]} chosen
 * @param {import('./checks.mjs').Context} context
 * @param {boolean} verbose
 * @returns {Promise<Result[]>}
 */
async function runAll(chosen, context, verbose) {
  /** @type {Result[]} */
  const results = []
  /** @type {Set<string>} */
  const running = new Set()
  const waiting = [...chosen.entries()]
  let told = 0
  // At a terminal one sees what is being waited for; in a log each check is one whole line.
  const show = (/** @type {Iterable<string>} */ names) => {
    const line = [...names].map((name) => `${name} ...`).join(' ')
    if (process.stdout.isTTY) process.stdout.write(`\r\u001b[2K${line}`)
  }
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [place, check] = next
      running.add(check.name)
      show(running)
      results[place] = await runOne(check, context)
      running.delete(check.name)
      show([])
      for (const result of results.slice(told)) {
        if (result === undefined) break
        tell(result, verbose)
        told += 1
      }
      show(running)
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, work))
  return results
}

function summarise(/** @type {readonly Result[]} */ results, /** @type {number} */ tookMs) {
  const failed = results.filter(({ passed }) => !passed).map(({ check }) => check.name)
  const seconds = (tookMs / 1000).toFixed(1)
  if (failed.length > 0) {
    console.log('')
    for (const { check, passed } of results) console.log(`${check.name.padEnd(width)}${passed ? 'ok' : 'FAILED'}`)
  }
  const verdict = failed.length === 0 ? 'all passed' : `failed: ${failed.join(', ')}`
  console.log(`\n${results.length} checks in ${seconds} s, ${verdict}`)
  return failed.length === 0 ? 0 : 1
}

/**
 * @param {string} root
 * @param {readonly string[]} args names of checks, --list, --verbose
 * @returns {Promise<number>}
 */
export async function check(root, args) {
  const names = args.filter((arg) => !arg.startsWith('-'))
  const unknown = args.filter(
    (arg) => !['--list', '--verbose'].includes(arg) && !checks.some((check) => check.name === arg),
  )
  if (args.includes('--list') || unknown.length > 0) {
    if (unknown.length > 0) console.error(`There is no check or option ${unknown.join(', ')}. The checks are:\n`)
    list()
    return unknown.length > 0 ? 2 : 0
  }
  const chosen = names.length === 0 ? checks : checks.filter((check) => names.includes(check.name))
  const { context, folder } = newContext(root)
  const startedMs = performance.now()
  /** @type {Result[]} */
  let results
  try {
    results = await runAll(chosen, context, args.includes('--verbose'))
  } finally {
    const left = await folder()
    if (left !== undefined) rmSync(left, { recursive: true, force: true })
  }
  return summarise(results, performance.now() - startedMs)
}
