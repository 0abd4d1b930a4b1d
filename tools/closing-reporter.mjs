// A vitest reporter that only counts; tools/test.mjs prints the counts once vitest is gone.
//
// Everything that keeps a test from passing is a failure here: a file that cannot be imported, a hook that throws, an
// error nobody awaited, a worker that dies. After every test the counts so far are written down, so that they are there
// even when vitest itself is killed.

import { writeFileSync } from 'node:fs'

/**
 * @typedef {object} Counts
 * @property {number} passed
 * @property {number} failed
 * @property {number} skipped
 * @property {boolean} finished whether the run came to its end
 */

/**
 * Counts a file or a suite. When it is broken (its import or a beforeAll hook threw), the tests that would have run did
 * not pass; when it is broken and no test is to blame (an afterAll hook threw), the suite itself is one failure.
 * @param {import('vitest/node').TestModule | import('vitest/node').TestSuite} suite
 * @param {Counts} counts
 * @param {boolean} brokenAbove
 * @returns {number} how many tests did not run because something is broken
 */
function countSuite(suite, counts, brokenAbove) {
  const broken = suite.errors().length > 0
  let prevented = 0
  for (const child of suite.children) {
    if (child.type === 'suite') {
      prevented += countSuite(child, counts, broken || brokenAbove)
      continue
    }
    const { state } = child.result()
    const chosenToSkip = child.options.mode === 'skip' || child.options.mode === 'todo'
    if (state === 'passed') counts.passed += 1
    else if (state === 'failed') counts.failed += 1
    else if (state === 'skipped' && (chosenToSkip || !(broken || brokenAbove))) counts.skipped += 1
    else prevented += 1
  }
  if (!brokenAbove) {
    counts.failed += prevented === 0 && broken ? 1 : prevented
    return 0
  }
  return prevented
}

/**
 * @param {readonly import('vitest/node').TestModule[]} modules
 * @param {number} unhandledErrors
 * @returns {Counts}
 */
function countRun(modules, unhandledErrors) {
  /** @type {Counts} */
  const counts = { passed: 0, failed: unhandledErrors, skipped: 0, finished: true }
  for (const module of modules) countSuite(module, counts, false)
  return counts
}

/** Made and called by vitest, which is given this file as a reporter. */
export default class ClosingReporter {
  /** @type {Counts} */
  #soFar = { passed: 0, failed: 0, skipped: 0, finished: false }

  /** @param {import('vitest/node').TestCase} test */
  onTestCaseResult(test) {
    const { state } = test.result()
    if (state !== 'pending') this.#soFar[state] += 1
    this.#write(this.#soFar)
  }

  /**
   * @param {readonly import('vitest/node').TestModule[]} modules
   * @param {readonly unknown[]} unhandledErrors
   */
  onTestRunEnd(modules, unhandledErrors) {
    this.#write(countRun(modules, unhandledErrors.length))
  }

  #write(/** @type {Counts} */ counts) {
    const path = process.env['REPRISE_COUNTS']
    if (path !== undefined) writeFileSync(path, JSON.stringify(counts))
  }
}
