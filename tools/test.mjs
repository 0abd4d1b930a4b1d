// `npm test`: runs vitest and says as the very last line how many tests passed, failed and were skipped.
//
// vitest writes through pipes of ours, and after its end nothing more is let through: a server that a test left behind
// cannot write after the closing line.

import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { passSignals } from './process.mjs'
import { missingServers, needServers } from './servers.mjs'
import { ensureSqliteDrivers } from './sqlite-drivers.mjs'
import { reportOf } from './test-report.mjs'

const newline = 10
const reporter = fileURLToPath(new URL('./closing-reporter.mjs', import.meta.url))

/** @typedef {import('./closing-reporter.mjs').Counts} Counts */

/** @returns {Counts | undefined} */
function readCounts(/** @type {string} */ path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return undefined // vitest did not come far enough to report anything
  }
}

/**
 * What is true of the run, given what was counted and how vitest ended.
 * @param {Counts | undefined} counted
 * @param {number} code exit code of vitest
 * @param {boolean} filtered whether tests were chosen by name
 * @returns {Counts & { note?: string }}
 */
export function judge(counted, code, filtered) {
  const counts = counted ?? { passed: 0, failed: 0, skipped: 0, finished: false }
  if (!counts.finished) {
    return {
      ...counts,
      failed: counts.failed + 1,
      note: 'vitest did not finish its run; that is counted as a failure.',
    }
  }
  if (counts.failed > 0) return counts
  const tests = counts.passed + counts.skipped
  if (tests === 0) return { ...counts, failed: 1, note: 'no test was found; that is counted as a failure.' }
  if (filtered && counts.passed === 0) {
    return { ...counts, failed: 1, note: 'no test has such a name; that is counted as a failure.' }
  }
  if (code !== 0) {
    return { ...counts, failed: 1, note: `vitest ended with code ${code}; that is counted as a failure.` }
  }
  return counts
}

export function closingLine(/** @type {Pick<Counts, 'passed' | 'failed' | 'skipped'>} */ counts) {
  return `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`
}

/** Colours survive our pipes when we ourselves write to a terminal. */
function colours() {
  return process.stdout.isTTY && process.env['NO_COLOR'] === undefined ? { FORCE_COLOR: '1' } : {}
}

/**
 * Runs vitest under a given Node, shows its output, and answers what happened.
 * @param {string} root
 * @param {readonly string[]} args
 * @param {{ node?: string, env?: NodeJS.ProcessEnv, show?: (chunk: Buffer, stream: 'stdout' | 'stderr') => void }}
 *   [options]
 * @returns {Promise<Counts & { note?: string, code: number }>}
 */
export async function runTests(root, args, options = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-counts-'))
  const countsPath = join(folder, 'counts.json')
  const show = options.show ?? ((chunk, stream) => process[stream].write(chunk))
  const script = join(root, 'node_modules', 'vitest', 'vitest.mjs')
  const child = spawn(
    options.node ?? process.execPath,
    [script, 'run', '--reporter=default', `--reporter=${reporter}`, ...args],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...colours(), ...options.env, REPRISE_COUNTS: countsPath },
    },
  )
  const release = passSignals(child)
  let lastChunkMs = 0
  /** Streams whose last line has no end yet. @type {Set<string>} */
  const inLine = new Set()
  for (const stream of /** @type {const} */ (['stdout', 'stderr'])) {
    child[stream].on('data', (chunk) => {
      lastChunkMs = performance.now()
      inLine[chunk.at(-1) === newline ? 'delete' : 'add'](stream)
      show(chunk, stream)
    })
  }
  const closed = new Promise((resolve) => child.once('close', resolve))
  const code = await new Promise((resolve) => {
    child.once('error', () => resolve(127))
    child.once('exit', (code, signal) => resolve(code ?? 128 + constants.signals[signal ?? 'SIGKILL']))
  })
  // What vitest wrote is still in the pipe. A process that outlives it keeps the pipe open and may even go on writing,
  // so silence ends the wait too, and so does the clock.
  const endedMs = performance.now()
  for (let open = true; open && performance.now() - Math.max(lastChunkMs, endedMs) < 200; ) {
    if (performance.now() - endedMs > 1_000) break
    open = await Promise.race([closed.then(() => false), sleep(20, true)])
  }
  child.stdout.destroy()
  child.stderr.destroy()
  if (inLine.size > 0) show(Buffer.of(newline), 'stdout') // what comes next stands on a line of its own
  release()
  const filtered = args.some((arg) => /^(-t|--testNamePattern)(=|$)/.test(arg))
  const judged = judge(readCounts(countsPath), code, filtered)
  rmSync(folder, { recursive: true, force: true })
  return { ...judged, code: judged.failed > 0 && code === 0 ? 1 : code }
}

/** Installs what the chosen tests need, and says what is missing still: JSON of names and reasons, for the tests. */
export async function missingFor(/** @type {string} */ root, /** @type {readonly string[]} */ args) {
  if (!needServers(args)) return {}
  const missing = await missingServers(root)
  await ensureSqliteDrivers(root)
  for (const { what, why } of missing) console.log(`what needs ${what} is skipped: ${why}`)
  return missing.length === 0
    ? {}
    : { REPRISE_MISSING: JSON.stringify(Object.fromEntries(missing.map(({ what, why }) => [what, why]))) }
}

/** The tests of the tools have a command of their own, unless they are asked for by name. */
function withoutTools(/** @type {readonly string[]} */ args) {
  const chooses = args.some((arg) => /^--(project|root)\b/.test(arg) || /(^|\/)test\/tools\b/.test(arg))
  return chooses ? args : ['--project=!tools', ...args]
}

/**
 * `npm test`: servers and drivers where they are needed, tests, what took how long, the closing line, and an exit code
 * that agrees with it.
 * @param {string} root
 * @param {readonly string[]} given arguments of vitest; with --every-cell a test that was skipped is a failure of the
 *   run
 */
export async function test(root, given) {
  const everyCell = given.includes('--every-cell')
  const args = given.filter((arg) => arg !== '--every-cell')
  const result = await runTests(root, withoutTools(args), { env: await missingFor(root, args) })
  const report = reportOf(result.files ?? [], { whole: args.length === 0 })
  if (report !== '') console.log(`\n${report}\n`)
  if (result.note !== undefined) console.log(result.note)
  const isShort = everyCell && result.skipped > 0
  if (isShort) console.log('every cell was asked for, and something was skipped; that is a failure.')
  console.log(closingLine(result))
  return isShort && result.code === 0 ? 1 : result.code
}
