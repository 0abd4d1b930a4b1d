// `npm run walk`: how many files and functions of the package one call enters, measured on a PostgreSQL of its own.
//
// A reader follows a call through these files, so fewer are better. ARCHITECTURE.md holds the table; a test compares.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Refusal } from '../process.mjs'

/** @typedef {import('./calls.mjs').Walked} Walked */
/** @typedef {{ name: string, files: number, functions: number }} Row */

/** The order of modules, lowest first; what is not named here comes before them. */
const modules = [
  'kernel',
  'telemetry',
  'identity',
  'retry',
  'atomicity',
  'transaction',
  'idempotency',
  'stores',
  'http',
]

/** @param {Walked} walked @returns {Row} */
function rowOf({ name, entered }) {
  return { name, files: entered.size, functions: [...entered.values()].flat().length }
}

/** The files in the order of modules, each with its functions. */
function inOrder(/** @type {Walked} */ { entered }) {
  const place = (/** @type {string} */ path) => modules.indexOf(path.split('/')[0] ?? '')
  return [...entered].sort(([a], [b]) => place(a) - place(b) || (a < b ? -1 : 1))
}

/** The lines of a table in Markdown. */
function tableOf(/** @type {readonly Row[]} */ rows) {
  const lines = rows.map(({ name, files, functions }) => `| ${name} | ${files} | ${functions} |`)
  return ['| call | files | functions |', '|---|---|---|', ...lines].join('\n')
}

/** What stands between the markers of ARCHITECTURE.md. */
const marked = /(<!-- walk -->\n\n)[\s\S]*?(\n\n<!-- \/walk -->)/

function writeTable(/** @type {string} */ root, /** @type {readonly Row[]} */ rows) {
  const page = join(root, 'ARCHITECTURE.md')
  const text = readFileSync(page, 'utf8')
  if (!marked.test(text))
    throw new Refusal('ARCHITECTURE.md has no place for the table: <!-- walk --> … <!-- /walk -->.')
  writeFileSync(page, text.replace(marked, `$1${tableOf(rows)}$2`))
}

/**
 * @param {string} root
 * @param {readonly string[]} args --json: machine-readable; --verbose: every file and function; --write: the table of
 *   ARCHITECTURE.md anew
 * @returns {Promise<number>}
 */
export async function walk(root, args) {
  const unknown = args.filter((arg) => !['--json', '--verbose', '--write'].includes(arg))
  if (unknown.length > 0)
    throw new Refusal(`npm run walk takes --json, --verbose and --write, not ${unknown.join(', ')}.`, 2)
  // Both need what is installed, and this file is loaded before.
  const { startPostgres } = await import('../../bench/postgres-server.mjs')
  const { walkCalls } = await import('./calls.mjs')
  const server = await startPostgres()
  const calls = await walkCalls(root, server.url).finally(() => server.dispose())
  const rows = calls.map(rowOf)
  if (args.includes('--write')) writeTable(root, rows)
  const verbose = args.includes('--verbose')
  if (args.includes('--json')) {
    const entered = calls.map((call) => ({ entered: Object.fromEntries(inOrder(call)) }))
    console.log(JSON.stringify(rows.map((row, index) => ({ ...row, ...(verbose ? entered[index] : {}) }))))
    return 0
  }
  const width = Math.max(...rows.map(({ name }) => name.length))
  for (const [index, call] of calls.entries()) {
    const { name, files, functions } = rowOf(call)
    console.log(`${name.padEnd(width)}  ${String(files).padStart(3)} files  ${String(functions).padStart(3)} functions`)
    if (!verbose) continue
    for (const [path, names] of inOrder(call)) console.log(`  ${path.padEnd(48)} ${names.length}  ${names.join(' ')}`)
    if (index < calls.length - 1) console.log('')
  }
  return 0
}
