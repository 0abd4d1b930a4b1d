// A runner of vitest that skips what needs a missing server: a test that throws MissingServer, itself or in its
// beforeEach, the tests of a suite whose beforeAll does, and a file that cannot be collected for it. vitest is given
// this file by its path.

import { type RunnerTask, type RunnerTestCase, type RunnerTestFile, type RunnerTestSuite, TestRunner } from 'vitest'

/** A hook of whatever kind. */
type Hook = (...args: unknown[]) => unknown

/** The message of the MissingServer that an error is, or was caused by. */
function whyMissing(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const { name, message, cause } = error as Error
  return name === 'MissingServer' ? message : whyMissing(cause)
}

/** The first test below a task: vitest gives a way to skip only to tests. */
function firstTest(task: RunnerTask): RunnerTestCase | undefined {
  if (task.type === 'test') return task
  for (const child of task.tasks) {
    const test = firstTest(child)
    if (test !== undefined) return test
  }
  return undefined
}

export default class SkippingRunner extends TestRunner {
  /** Tasks that met a missing server; what cleans up after them finds nothing to clean up. */
  readonly #skipped = new WeakSet<object>()

  /** Goes on with an error: a test that met a missing server is skipped, any other error is thrown as it is. */
  #skipOrThrow(task: RunnerTask, error: unknown): never {
    const why = whyMissing(error)
    const test = firstTest(task)
    if (why === undefined || test === undefined) throw error
    this.#skipped.add(task)
    return test.context.skip(why)
  }

  onCollected(files: RunnerTestFile[]): void {
    for (const file of files) {
      if (file.result?.errors?.some((error) => whyMissing(error) !== undefined) !== true) continue
      file.mode = 'skip'
      file.result = { state: 'skip' }
    }
  }

  override async onBeforeRunSuite(suite: RunnerTestSuite): Promise<void> {
    await super.onBeforeRunSuite(suite)
    const hooks = TestRunner.getSuiteHooks(suite) as unknown as Record<string, Hook[] | undefined>
    for (const name of ['beforeAll', 'beforeEach', 'afterAll', 'afterEach']) {
      for (const [index, hook] of hooks[name]?.entries() ?? []) {
        const wrapped = async (...args: unknown[]): Promise<unknown> => {
          const task = name.endsWith('All') ? suite : (args[0] as RunnerTestCase['context']).task
          try {
            return await hook(...args)
          } catch (error) {
            if (name.startsWith('before')) this.#skipOrThrow(task, error)
            if (this.#skipped.has(task)) return undefined
            throw error
          }
        }
        // vitest keeps the limits of a hook as properties of it.
        hooks[name]?.splice(index, 1, Object.defineProperties(wrapped, Object.getOwnPropertyDescriptors(hook)))
      }
    }
  }

  async runTask(test: RunnerTestCase): Promise<void> {
    try {
      await TestRunner.getTestFn(test)()
    } catch (error) {
      this.#skipOrThrow(test, error)
    }
  }
}
