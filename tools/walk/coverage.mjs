// Which functions of the built package a piece of work enters, by V8's precise coverage.

import { Session } from 'node:inspector/promises'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** @typedef {Map<string, string[]>} Entered names of the functions that were entered, by file relative to dist */

/**
 * Starts counting calls. From here on V8 gives up no function that it has compiled, so whatever is to be measured is
 * called once before: what runs only the first time is no part of a call.
 * @param {string} root
 */
export async function startCoverage(root) {
  const dist = join(root, 'dist')
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  return {
    /** @param {() => Promise<unknown>} work @returns {Promise<Entered>} */
    async enteredBy(work) {
      await session.post('Profiler.takePreciseCoverage') // sets every count back to 0
      await work()
      const { result } = await session.post('Profiler.takePreciseCoverage')
      /** @type {Entered} */
      const entered = new Map()
      for (const { url, functions } of result) {
        if (!url.startsWith('file:') || !fileURLToPath(url).startsWith(join(dist, '/'))) continue
        // The function that begins at 0 is the module itself, which runs when it is loaded.
        const called = functions.filter(({ ranges: [whole] }) => whole && whole.count > 0 && whole.startOffset > 0)
        const names = called.map(({ functionName }) => functionName || '(anonymous)')
        if (names.length > 0) entered.set(relative(dist, fileURLToPath(url)), names)
      }
      return entered
    },
    end: () => session.disconnect(),
  }
}
