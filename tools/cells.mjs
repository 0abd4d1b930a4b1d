// The cells of the tests: what is run against which store, driver, adapter, server and Node. `npm test` prints what
// became of each; what it leaves to `npm run test:matrix` is said here, so that nothing is left out in silence.

/**
 * @typedef {object} Cell
 * @property {string} name
 * @property {RegExp} [files] its test files; the first cell that a file matches has it. Default: none, test:matrix runs
 *   it
 * @property {string} [matrix] what of it only test:matrix runs
 */

/** @type {readonly Cell[]} */
export const cells = [
  { name: 'stores and drivers, every conformance case', files: /^test\/stores\/conformance\// },
  { name: 'memory', files: /^test\/stores\/memory\// },
  { name: 'SQLite, a sync that fails (strace)', files: /^test\/stores\/sqlite\/failing-sync/ },
  { name: 'SQLite: libsql, node:sqlite, better-sqlite3, Drizzle', files: /^test\/stores\/sqlite\// },
  { name: 'PostgreSQL, also behind PgBouncer', files: /^test\/stores\/(postgres\/|servers)/ },
  { name: 'callback: TypeORM, pg, libsql', files: /^test\/stores\/callback\// },
  { name: 'records and operations on every store', files: /^test\/stores\/(records|operations|http)\// },
  { name: 'faults behind PgBouncer', files: /^test\/faults\/behind-pooler/ },
  { name: 'faults of operations', files: /^test\/faults\/operations\// },
  { name: 'faults of transactions', files: /^test\/faults\// },
  {
    name: 'HTTP cases in one process, every adapter on the one store',
    files: /^test\/http\/conformance\/one-process/,
    matrix: 'every adapter on the other store',
  },
  {
    name: 'HTTP cases in two processes, every adapter on the other store',
    files: /^test\/http\/conformance\/two-processes/,
    matrix: 'every adapter on the one store',
  },
  {
    name: 'HTTP under control (killed, stopped, locked), every adapter on one store',
    files: /^test\/http\/conformance\/(controlled|degradation)/,
    matrix: 'every adapter on the other store',
  },
  { name: 'HTTP, private and with clients of others, every adapter and store', files: /^test\/http\/conformance\// },
  { name: 'HTTP adapters', files: /^test\/http\// },
  { name: 'sample service in a browser (Chromium)', files: /^test\/e2e\/page/ },
  {
    name: 'an app of a new user, from the tarball (Express)',
    files: /^test\/e2e\/apps\//,
    matrix: 'also Fastify, Nest, a script; Prisma under every conformance case',
  },
  {
    name: 'functions of Lambda, route handlers of Next, Workers: the code of their guides',
    files: /^test\/e2e\/platforms\//,
    matrix: 'served by Next, and in workerd',
  },
  { name: 'sample service', files: /^test\/e2e\// },
  {
    name: 'operations and messages under torture, PostgreSQL and SQLite',
    files: /^test\/torture\//,
    matrix: 'the default run, through PgBouncer too, and every planted bug',
  },
  { name: 'one call, walked', files: /^test\/walk\// },
  { name: 'CommonJS, from the tarball', files: /^test\/package\/commonjs/, matrix: 'in Jest with ts-jest' },
  { name: 'entry points, packed and installed', files: /^test\/package\// },
  { name: 'the library without servers', files: /^(src|test)\// },
  { name: 'other versions of Node', matrix: 'everything on each of them' },
  { name: 'PgBouncer that knows prepared statements', matrix: 'everything that needs a pooler' },
  { name: 'other versions of PostgreSQL', matrix: 'everything that needs a store on each of them' },
]

/** The test files that have more to run where REPRISE_LONG is set. */
export const longCells = [
  'test/http/conformance/controlled.test.ts',
  'test/http/conformance/degradation.test.ts',
  'test/http/conformance/one-process.test.ts',
  'test/http/conformance/two-processes.test.ts',
  'test/torture/planted-bugs.test.ts',
  'test/torture/torture.test.ts',
]

/** The test files that put PgBouncer in front of PostgreSQL. */
export const poolerCells = [
  'test/faults/behind-pooler.test.ts',
  'test/faults/message-readers.test.ts',
  'test/stores/postgres/classification.test.ts',
  'test/stores/postgres/doctor.test.ts',
  'test/stores/postgres/records.test.ts',
  'test/stores/servers.test.ts',
]

/** The name of the cell that a test file belongs to. @param {string} path @returns {string | undefined} */
export function cellOf(path) {
  return cells.find(({ files }) => files?.test(path))?.name
}
