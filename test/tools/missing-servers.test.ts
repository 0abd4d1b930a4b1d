// On a machine without a server, the tests that need it are skipped, with the reason, and the others run.

import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { root } from './repository-copy.js'

/** `npm test` as on a machine without PostgreSQL, Chromium and strace. */
function npmTest(...args: string[]) {
  const env = { ...process.env, REPRISE_READY: root, REPRISE_WITHOUT: 'PostgreSQL,Chromium,strace', VITEST: undefined }
  const command = ['tools/run.mjs', 'test', ...args]
  const { stdout, status } = spawnSync(process.execPath, command, { cwd: root, env, encoding: 'utf8' })
  const [, passed, failed, skipped] = /(\d+) passed, (\d+) failed, (\d+) skipped\n$/.exec(stdout)?.map(Number) ?? []
  return { stdout, status, passed, failed, skipped }
}

it('skips what needs it: in tests, in hooks, in a file of many stores', () => {
  const files = ['test/stores/servers.test.ts', 'test/stores/sqlite/failing-sync.test.ts', 'test/e2e/page.test.ts']
  const { stdout, status, passed, failed, skipped } = npmTest(...files, 'test/stores/operations/refuse.test.ts')
  expect(stdout).toContain('what needs PostgreSQL is skipped: REPRISE_WITHOUT leaves it out')
  expect([failed, status], stdout).toEqual([0, 0])
  expect(passed).toBeGreaterThan(0)
  expect(skipped).toBeGreaterThan(10)
})

it('fails for it where every cell was asked for', () => {
  const { stdout, status, failed } = npmTest('--every-cell', 'test/stores/servers.test.ts')
  expect(stdout).toContain('every cell was asked for, and something was skipped; that is a failure.')
  expect([failed, status]).toEqual([0, 1])
})
