// The tests in four groups. The first two run together: the tests of the stores need real servers, and wait for locks,
// leases and processes for half of their time, in which the unit tests work. They share a PostgreSQL that is started
// for them. The other groups run after them, one after the other: whole builds and installations keep every core busy.
//
// Every test file belongs to exactly one group; `npm test -- --project unit` runs one of them.

import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { FileOrder } from './test/file-order.js'

// One seed for all property tests of a run, printed so that a failure can be drawn again.
const seed = process.env['REPRISE_SEED'] ?? String(Math.floor(Math.random() * 0x7fffffff))
// Every project loads this file again; the line is printed once.
if (process.env['REPRISE_SEED_SHOWN'] !== seed) console.log(`property tests draw from REPRISE_SEED=${seed}`)
Object.assign(process.env, { REPRISE_SEED: seed, REPRISE_SEED_SHOWN: seed })

// What needs a server that this machine does not have is skipped, and `npm test` says so.
const runner =
  process.env['REPRISE_MISSING'] === undefined
    ? {}
    : { runner: new URL('./test/servers/skipping-runner.ts', import.meta.url).pathname }

// Limits for what builds, installs and checks whole copies of the repository: minutes, and on a busy machine many.
const slow = { testTimeout: 1_800_000, hookTimeout: 1_800_000 }
// Limits for all others, which only end what hangs. They say nothing of how long a test takes: a machine on which
// others work may need ten times as long.
const patient = { testTimeout: 300_000, hookTimeout: 300_000 }

// The two groups that run together have to agree on the number of workers: enough to keep two cores busy while some of
// them wait, and on any machine few enough for the connections of the PostgreSQL that they share.
const together = { sequence: { groupOrder: 0 }, maxWorkers: 3 }

export default defineConfig({
  test: {
    ...runner,
    exclude: ['**/node_modules/**', '**/fixtures/**'],
    // Left to itself vitest keeps a core free, which on two of them is half of the time.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    ...patient,
    sequence: { sequencer: FileOrder },
    // What is polled comes about; the second that vitest waits by default is short on a busy machine.
    expect: { poll: { timeout: 60_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: [
            '**/node_modules/**',
            '**/fixtures/**',
            'test/e2e/**',
            'test/faults/**',
            'test/http/conformance/**',
            'test/package/**',
            'test/stores/**',
            'test/tools/**',
            'test/torture/**',
            'test/walk/**',
          ],
          ...together,
        },
      },
      {
        extends: true,
        test: {
          name: 'stores',
          include: [
            'test/stores/**/*.test.ts',
            'test/faults/**/*.test.ts',
            'test/http/conformance/**/*.test.ts',
            'test/e2e/**/*.test.ts',
            'test/torture/**/*.test.ts',
            'test/walk/**/*.test.ts',
          ],
          globalSetup: ['test/servers/shared-postgres.ts'],
          ...together,
        },
      },
      {
        extends: true,
        test: { name: 'package', include: ['test/package/**/*.test.ts'], sequence: { groupOrder: 1 }, ...slow },
      },
      {
        extends: true,
        test: {
          name: 'tools',
          include: ['test/tools/**/*.test.ts'],
          sequence: { groupOrder: 2 },
          maxWorkers: 2,
          ...slow,
        },
      },
    ],
  },
})
