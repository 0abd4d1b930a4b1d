// The closing line of `npm test` is true in every case: real vitest processes on small folders, most of them broken.

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')
const fixtures = `${root}/test/tools/fixtures/closing-line`

interface Ended {
  readonly code: number
  readonly stdout: string
  readonly lastLine: string
}

/** What `npm test` does, on a folder of fixtures. */
function npmTest(folder: string, ...args: string[]): Promise<Ended> {
  const command = [`${root}/tools/run.mjs`, 'test', '--root', `${fixtures}/${folder}`, ...args]
  // Everything is installed and built already: this very test runs on it.
  const env = { ...process.env, REPRISE_READY: root, VITEST: undefined, NODE_ENV: undefined }
  return new Promise((resolve) => {
    execFile(process.execPath, command, { env }, (error, stdout) => {
      const code = error === null ? 0 : Number(error.code)
      resolve({ code, stdout, lastLine: stdout.replace(/\n$/, '').split('\n').at(-1) ?? '' })
    })
  })
}

describe.concurrent('the closing line', { timeout: 120_000 }, () => {
  const cases: readonly { why: string; code: number; line: string; args: readonly [folder: string, ...string[]] }[] = [
    { why: 'all tests pass', code: 0, line: '2 passed, 0 failed, 0 skipped', args: ['all-pass'] },
    { why: 'a test fails', code: 1, line: '1 passed, 1 failed, 0 skipped', args: ['some-fail'] },
    {
      why: 'tests are skipped or still to be written',
      code: 0,
      line: '1 passed, 0 failed, 3 skipped',
      args: ['skip-and-todo'],
    },
    { why: 'a file cannot be imported', code: 1, line: '1 passed, 1 failed, 0 skipped', args: ['import-fails'] },
    { why: 'a file has a syntax error', code: 1, line: '0 passed, 1 failed, 0 skipped', args: ['syntax-error'] },
    { why: 'a suite cannot be collected', code: 1, line: '0 passed, 1 failed, 0 skipped', args: ['suite-throws'] },
    { why: 'a rejection is nobody’s', code: 1, line: '1 passed, 1 failed, 0 skipped', args: ['unhandled-rejection'] },
    {
      why: 'beforeAll throws: none of its tests passed',
      code: 1,
      line: '1 passed, 2 failed, 1 skipped',
      args: ['before-all-throws'],
    },
    {
      why: 'afterAll throws: one more failure',
      code: 1,
      line: '1 passed, 1 failed, 0 skipped',
      args: ['after-all-throws'],
    },
    {
      why: 'hooks of nested suites throw: each is a failure, but a beforeAll only through its tests',
      code: 1,
      line: '2 passed, 5 failed, 1 skipped',
      args: ['hooks-of-two-suites'],
    },
    {
      why: 'a failure ends the run: what was not run did not fail',
      code: 1,
      line: '0 passed, 2 failed, 2 skipped',
      args: ['bail', '--bail=1'],
    },
    { why: 'a global teardown throws', code: 1, line: '1 passed, 1 failed, 0 skipped', args: ['teardown-throws'] },
    { why: 'a global teardown never ends', code: 1, line: '1 passed, 1 failed, 0 skipped', args: ['teardown-hangs'] },
    { why: 'the output ends within a line', code: 0, line: '1 passed, 0 failed, 0 skipped', args: ['no-newline'] },
    {
      why: 'afterEach throws: its test failed',
      code: 1,
      line: '0 passed, 2 failed, 0 skipped',
      args: ['after-each-throws'],
    },
    {
      why: 'a test ends the process with success',
      code: 1,
      line: '1 passed, 1 failed, 0 skipped',
      args: ['process-exit'],
    },
    {
      why: 'a worker is killed: the test, and the error',
      code: 1,
      line: '1 passed, 2 failed, 0 skipped',
      args: ['worker-killed'],
    },
    { why: 'there is no test', code: 1, line: '0 passed, 1 failed, 0 skipped', args: ['empty'] },
    {
      why: 'vitest cannot read its configuration',
      code: 1,
      line: '0 passed, 1 failed, 0 skipped',
      args: ['bad-config'],
    },
    {
      why: 'no file has such a name',
      code: 1,
      line: '0 passed, 1 failed, 0 skipped',
      args: ['all-pass', 'no-such-file'],
    },
    {
      why: 'no test has such a name',
      code: 1,
      line: '0 passed, 1 failed, 2 skipped',
      args: ['all-pass', '-t', 'no such test'],
    },
    {
      why: 'vitest refuses an option',
      code: 1,
      line: '0 passed, 1 failed, 0 skipped',
      args: ['all-pass', '--no-such-option-exists'],
    },
    {
      why: 'no test may be there, but there is none',
      code: 1,
      line: '0 passed, 1 failed, 0 skipped',
      args: ['empty', '--passWithNoTests'],
    },
    {
      why: 'errors are to be ignored, but are not',
      code: 1,
      line: '1 passed, 1 failed, 0 skipped',
      args: ['unhandled-rejection', '--dangerouslyIgnoreUnhandledErrors'],
    },
  ]

  it.each(cases)('when $why: exit $code, $line', async ({ code, line, args }) => {
    const ended = await npmTest(...args)
    expect(ended.lastLine, ended.stdout).toBe(line)
    expect(ended.code).toBe(code)
  })

  it('when vitest itself is killed: what was counted, and one failure more', async () => {
    const { code, lastLine } = await npmTest('vitest-killed')
    expect(lastLine).toMatch(/^[01] passed, 1 failed, 0 skipped$/)
    expect(code).toBe(128 + 9)
  })

  it('comes after everything that a forgotten process still writes', async () => {
    const { stdout, lastLine, code } = await npmTest('late-writer')
    expect(stdout).toContain('still here')
    expect(lastLine).toBe('1 passed, 0 failed, 0 skipped')
    expect(code).toBe(0)
  })
})
