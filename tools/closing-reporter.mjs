// A vitest reporter that only counts; tools/test.mjs prints the counts once vitest is gone.
//
// Everything that keeps a test from passing is a failure here: a file that cannot be imported, a hook that throws, an
// error nobody awaited, a worker that dies, a teardown that throws. After every test the counts so far are written
// down, so that they are there even when vitest itself is killed.

import { writeFileSync } from 'node:fs'

/**
 * @typedef {object} Counts
 * @property {number} passed
 * @property {number} failed
 * @property {number} skipped
 * @property {boolean} finished whether the run came to its end, teardowns included
 * @property {FileTime[]} [files] what each file took, once the run is over
 */

/**
 * @typedef {object} FileTime
 * @property {string} group the name of its project
 * @property {string} path relative to the root
 * @property {number} startMs when it was begun, imports included, on the clock of this process
 * @property {number} endMs
 * @property {number} tests those that were skipped included
 * @property {number} skipped
 * @property {string[]} reasons why tests say that they were skipped, each reason once
 */

/** What the tests themselves do not say. @typedef {{ started: ReadonlySet<string>, interrupted: boolean }} Run */

/**
 * Counts the tests of a file or a suite, and each error of its own hooks. The error of a beforeAll hook is told by the
 * tests that it kept from running: they did not pass, and it is no failure beside them.
 * @param {import('vitest/node').TestModule | import('vitest/node').TestSuite} suite
 * @param {Counts} counts
 * @param {Run} run
 * @returns {number} tests that did not run although nobody chose that; it is for a suite further up to say why
 */
function countSuite(suite, counts, run) {
  let kept = 0
  for (const child of suite.children) {
    if (child.type === 'suite') {
      kept += countSuite(child, counts, run)
      continue
    }
    const result = child.result()
    if (result.state !== 'skipped' && result.state !== 'pending') counts[result.state] += 1
    // Without a result: given up when the run was (--bail), or lost with its worker.
    else if (result.state === 'pending') counts[run.interrupted ? 'skipped' : 'failed'] += 1
    else if (isOwnChoice(child, result.note, run)) counts.skipped += 1
    else kept += 1
  }
  const errors = suite.errors().length
  if (errors === 0) return kept
  counts.failed += kept === 0 ? errors : kept + errors - 1
  return 0
}

/**
 * Whether a test is skipped because it says so, at once or while it runs, or because the run was given up (it has a
 * note).
 * @param {import('vitest/node').TestCase} test
 * @param {string | undefined} note
 * @param {Run} run
 */
function isOwnChoice(test, note, run) {
  return test.options.mode === 'skip' || test.options.mode === 'todo' || run.started.has(test.id) || note !== undefined
}

/** Made and called by vitest, which is given this file as a reporter. */
export default class ClosingReporter {
  /** @type {Counts} */
  #counts = { passed: 0, failed: 0, skipped: 0, finished: false }
  /** @type {Set<string>} */
  #started = new Set()
  /** When files were begun, by the id of their module. @type {Map<string, number>} */
  #begun = new Map()
  /** @type {FileTime[]} */
  #files = []
  #ended = false

  /** @param {import('vitest/node').Vitest} vitest */
  onInit(vitest) {
    // vitest comes here after the teardowns. What went wrong in closing it only says, and ends with success.
    vitest.onClose(() => this.#write({ finished: this.#ended }))
    const { logger } = vitest
    const error = logger.error.bind(logger)
    logger.error = (...says) => {
      if (says[0] === 'error during close') this.#write({ failed: this.#counts.failed + 1 })
      error(...says)
    }
  }

  /** @param {import('vitest/node').TestModule} module */
  onTestModuleQueued(module) {
    this.#begun.set(module.id, performance.now())
  }

  /** @param {import('vitest/node').TestModule} module */
  onTestModuleEnd(module) {
    const tests = [...module.children.allTests()].map((test) => test.result())
    const skipped = tests.filter(({ state }) => state === 'skipped')
    const reasons = skipped.flatMap((result) => ('note' in result && result.note !== undefined ? [result.note] : []))
    this.#files.push({
      group: module.project.name,
      path: module.relativeModuleId,
      startMs: this.#begun.get(module.id) ?? performance.now(),
      endMs: performance.now(),
      tests: tests.length,
      skipped: skipped.length,
      reasons: [...new Set(reasons)],
    })
  }

  /** @param {import('vitest/node').TestCase} test */
  onTestCaseReady(test) {
    this.#started.add(test.id)
  }

  /** @param {import('vitest/node').TestCase} test */
  onTestCaseResult(test) {
    const { state } = test.result()
    if (state !== 'pending') this.#write({ [state]: this.#counts[state] + 1 })
  }

  /**
   * @param {readonly import('vitest/node').TestModule[]} modules
   * @param {readonly unknown[]} unhandledErrors
   * @param {import('vitest/node').TestRunEndReason} reason
   */
  onTestRunEnd(modules, unhandledErrors, reason) {
    const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0, finished: false }
    const run = { started: this.#started, interrupted: reason === 'interrupted' }
    for (const module of modules) {
      const unexplained = countSuite(module, counts, run)
      counts.skipped += unexplained
      // A file that was left out before its tests were known counts as one.
      if (module.state() === 'skipped' && module.children.size === 0) counts.skipped += 1
    }
    this.#ended = true
    this.#write({ ...counts, files: this.#files })
  }

  #write(/** @type {Partial<Counts>} */ news) {
    Object.assign(this.#counts, news)
    const path = process.env['REPRISE_COUNTS']
    if (path !== undefined) writeFileSync(path, JSON.stringify(this.#counts))
  }
}
