// `npm run check`: runs the checks in order, shows output only of those that fail, and ends with a summary.

import { rmSync } from 'node:fs'
import { checks, newContext } from './checks.mjs'
import { Refusal } from './process.mjs'

/** @typedef {{ name: string, passed: boolean, seconds: number }} Result */

const width = Math.max(...checks.map((check) => check.name.length)) + 2

function list() {
  for (const { name, why } of checks) console.log(`${name.padEnd(width)}${why}`)
}

function indented(/** @type {string} */ text) {
  return text.replace(/^(?=.)/gm, '    ')
}

/**
 * @param {import('./checks.mjs').Check} check
 * @param {import('./checks.mjs').Context} context
 * @param {boolean} verbose
 * @returns {Promise<Result>}
 */
async function runOne(check, context, verbose) {
  const startedMs = performance.now()
  // At a terminal one sees what is being waited for; in a log each check is one whole line.
  if (process.stdout.isTTY) process.stdout.write(`${check.name} ...`)
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
  const seconds = (performance.now() - startedMs) / 1000
  if (process.stdout.isTTY) process.stdout.write('\r\u001b[2K')
  console.log(`${check.name.padEnd(width)}${passed ? 'ok    ' : 'FAILED'} ${seconds.toFixed(1).padStart(5)} s`)
  if (!passed) console.log(`\n    why: ${check.why}\n`)
  if (output !== '' && (!passed || verbose)) console.log(`${indented(output)}\n`)
  if (hint !== '') console.log(`\n    worth a look, and no failure:\n\n${indented(hint)}\n`)
  return { name: check.name, passed, seconds }
}

function summarise(/** @type {readonly Result[]} */ results) {
  const failed = results.filter((result) => !result.passed).map((result) => result.name)
  const seconds = results.reduce((sum, result) => sum + result.seconds, 0).toFixed(1)
  if (failed.length > 0) {
    console.log('')
    for (const { name, passed } of results) console.log(`${name.padEnd(width)}${passed ? 'ok' : 'FAILED'}`)
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
  const results = []
  try {
    for (const check of chosen) results.push(await runOne(check, context, args.includes('--verbose')))
  } finally {
    const left = await folder()
    if (left !== undefined) rmSync(left, { recursive: true, force: true })
  }
  return summarise(results)
}
