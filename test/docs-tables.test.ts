// What the documentation takes from the code is what the code says. REPRISE_WRITE_DOCS=1 writes it anew.

import { readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { drill } from '../src/drill/index.js'
import { problemKinds, replayedFields } from '../src/http/core/index.js'
import { leasedFaultPoints, operationFaultPoints } from '../src/idempotency/index.js'
import { windowFaultPoints } from '../src/messaging/index.js'
import { type PostgresPool, postgres } from '../src/stores/postgres/index.js'
import { postgresFindings, sharedFindings, sqliteFindings } from '../src/stores/sql/index.js'
import { sqlite } from '../src/stores/sqlite/index.js'
import { transactionFaultPoints } from '../src/transaction/index.js'
import { madeTables, withTable } from './docs-tables.js'
import { root } from './markdown.js'

const write = process.env['REPRISE_WRITE_DOCS'] === '1'
const read = (path: string): string => readFileSync(`${root}/${path}`, 'utf8')

/** Compares a file with what it should be, and writes it first where that is wanted. */
function keep(path: string, made: string): void {
  if (write) writeFileSync(`${root}/${path}`, made)
  expect(read(path), 'stale: run this test with REPRISE_WRITE_DOCS=1').toBe(made)
}

/** All first groups of a pattern, sorted, once each. */
function found(text: string, pattern: RegExp): string[] {
  return [...new Set([...text.matchAll(pattern)].map(([, name = '']) => name))].sort()
}

describe('tables', () => {
  it.each(madeTables.map((made) => [`${made.name} in ${made.page}`, made] as const))('%s', (_title, made) => {
    const text = made.lines()
    expect(text.length).toBeGreaterThan(4)
    keep(made.page, withTable(read(made.page), made.name, text))
  })

  it('have a place of their own, or are refused', () => {
    expect(withTable('a\n<!-- made: x -->\nold\n<!-- end -->\nb', 'x', ['new'])).toBe(
      'a\n<!-- made: x -->\n\nnew\n\n<!-- end -->\nb',
    )
    expect(() => withTable('a', 'x', ['new'])).toThrow('no place')
  })
})

describe('the schema', () => {
  it('of PostgreSQL', () => {
    const pool = { connect: () => Promise.reject(new Error('not connected')), on: () => undefined, totalCount: 0 }
    keep(
      'docs/reference/schema/postgres.sql',
      postgres({ pool: pool as never as PostgresPool, name: 'a' }).migrationSql(),
    )
  })

  it('of SQLite', () => {
    keep('docs/reference/schema/sqlite.sql', sqlite({ file: 'never-opened', name: 'a' }).migrationSql())
  })
})

describe('lists written by hand are complete', () => {
  const stores = read('docs/reference/stores.md')
  it('findings of the doctors, each in a test', () => {
    const units = ['src/stores/sql/doctor/postgres', 'src/stores/sqlite/doctor']
    const live = ['postgres/doctor', 'sqlite/small-disk', 'records/newer-code', 'records/pepper'].map(
      (path) => `test/stores/${path}`,
    )
    const tests = [...units, ...live].map((path) => read(`${path}.test.ts`)).join('\n')
    const untested = (codes: object): string[] => Object.keys(codes).filter((code) => !tests.includes(code))
    expect(untested(postgresFindings)).toEqual([])
    // No test has a network file system.
    expect(untested(sqliteFindings)).toEqual(['NETWORK_FILE_SYSTEM'])
    expect(untested(sharedFindings)).toEqual([])
  })

  it('options of transactions', () => {
    const options = found(read('src/transaction/options.ts'), /^ {2}readonly (\w+)\?:/gm)
    expect(options.length).toBeGreaterThan(12)
    expect(found(read('docs/reference/transactions.md'), /^\| `(\w+)` \| /gm)).toEqual(expect.arrayContaining(options))
  })

  it('options of stores', () => {
    const files = ['memory', 'sqlite', 'postgres', 'callback'].map((store) => read(`src/stores/${store}/options.ts`))
    const options = files.flatMap((text) =>
      found(text.slice(text.lastIndexOf('TransactionDefaults {')), /^ {2}readonly (\w+)\??:/gm),
    )
    expect(options.length).toBeGreaterThan(10)
    expect(found(stores, /^\| `(\w+)` \| /gm)).toEqual(expect.arrayContaining(options))
  })

  it.each([
    ['transaction', ['transaction-events']],
    ['operation', ['operation-events', 'lease-events']],
  ] as const)('channels and members of events: %s', (what, files) => {
    const source = files.map((file) => read(`src/telemetry/${file}.ts`)).join('\n')
    const page = read(`docs/reference/${what}-events.md`)
    const names = [...found(source, /'(reprise\.\w+\.[\w.-]+)'/g), ...found(source, /^ {2}readonly (\w+)\??:/gm)]
    expect(names.length).toBeGreaterThan(12)
    expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([])
  })

  it('channels, members, options and counts of dedupe windows', () => {
    const page = read('docs/reference/windows.md')
    const events = read('src/telemetry/window-events.ts')
    const source = read('src/messaging/window/contract.ts')
    const names = [
      ...found(events, /'(reprise\.\w+\.[\w.-]+)'/g),
      ...found(events, /^ {2}readonly (\w+)\??:/gm),
      ...found(source, /^ {2}readonly (\w+)\??:/gm),
    ]
    expect(names.length).toBeGreaterThan(25)
    expect(names.filter((name) => !new RegExp(`\`${name}[\`(]`).test(page))).toEqual([])
  })

  it('channels, members, options, codes and reasons of drills', () => {
    const page = read('docs/reference/drill.md')
    const events = read('src/drill/events.ts')
    const [, options = ''] = read('src/drill/contract.ts').split('interface DrillOptions')
    const names = [
      ...found(events, /'(reprise\.\w+\.[\w.-]+)'/g),
      ...found(events, /^ {2}readonly (\w+)\??:/gm),
      ...found(events, /'(DRILL_\w+)'/g),
      ...Object.keys(drill({ oneIn: 0 }).counts.skipped),
      ...found(options.split('\n}')[0] ?? '', /^ {2}readonly (\w+)\??:/gm),
    ]
    expect(names.length).toBeGreaterThan(25)
    expect(names.filter((name) => !new RegExp(`\`${name}[\`(]`).test(page))).toEqual([])
  })

  it('options of routes, problems and the event of routes', () => {
    const page = read('docs/reference/http-server.md')
    const inherited = ['retryHorizon', 'oldestKey', 'wait', 'reversibility'] // of operations, under the same names
    const own = found(read('src/http/core/route/options.ts'), /^ {2}readonly (\w+)\??:/gm)
    const options = [...own, ...inherited]
    expect(options.length).toBeGreaterThan(26)
    expect(options.filter((name) => !page.includes(`\`${name}\``))).toEqual([])
    for (const field of replayedFields) expect(page.toLowerCase()).toContain(`\`${field}\``)
    const problems = read('docs/reference/problems.md')
    expect(found(problems, /^## ([\w-]+)$/gm)).toEqual(Object.keys(problemKinds))
    for (const [name, { status, title, detail, retryable }] of Object.entries(problemKinds)) {
      expect(problems).toContain(`| [\`${name}\`](#${name}) | ${status} | ${title} | ${retryable ? 'yes' : 'no'} |`)
      expect(problems).toContain(`## ${name}\n\n> ${detail}\n`)
    }
    const events = read('docs/reference/http-events.md')
    const source = read('src/telemetry/http-events.ts')
    const names = [...found(source, /'(reprise\.\w+\.[\w.-]+)'/g), ...found(source, /^ {2}readonly (\w+)\??:/gm)]
    expect(names.length).toBeGreaterThan(6)
    expect(names.filter((name) => !events.includes(`\`${name}\``))).toEqual([])
  })

  it('options of operations, their bodies and their upkeep', () => {
    const page = read('docs/reference/operations.md')
    const folder = 'src/idempotency'
    const optionsOf = (path: string, name: string): string[] => {
      const [, body = ''] = read(`${folder}/${path}`).split(`interface ${name}`)
      return found(body.split('\n}')[0] ?? '', /^ {2}(?:readonly )?(\w+)(?:\??:|<|\()/gm)
    }
    const names = [
      ...optionsOf('definition.ts', 'OperationOptions'),
      ...optionsOf('definition.ts', 'CallOptions'),
      ...optionsOf('leased/plan.ts', 'LeasedOptions'),
      ...optionsOf('leased/lease.ts', 'Lease '),
      ...optionsOf('leased/recovery.ts', 'ResolveCall').filter((name) => name !== 'key'),
      ...optionsOf('upkeep/loop.ts', 'LoopOptions').filter((name) => name !== 'clock'),
      ...optionsOf('upkeep/sweep.ts', 'SweepOptions').filter((name) => !['random', 'operations'].includes(name)),
      ...optionsOf('upkeep/purge.ts', 'PurgeOptions').filter((name) => name !== 'random'),
      ...optionsOf('upkeep/settle.ts', 'SettleOptions'),
    ]
    expect(names.length).toBeGreaterThan(45)
    expect(names.filter((name) => !new RegExp(`\`${name}[\`(]`).test(page))).toEqual([])
  })

  it('options of the commands', () => {
    const page = read('docs/reference/commands.md')
    const files = ['migrate', 'doctor', 'inspect', 'why', 'sweep', 'purge', 'settle'].map((name) => `${name}-command`)
    const sources = [...files, 'open-store', 'output', 'which-record'].map((name) => `src/cli/store/${name}.ts`)
    const names = [...sources, 'src/cli/conformance/conformance-command.ts'].flatMap((path) =>
      found(read(path), /name: '([\w-]+)'/g),
    )
    expect(names.length).toBeGreaterThan(20)
    expect(names.filter((name) => !page.includes(`\`--${name}\``))).toEqual([])
  })

  it('fault points of the runners', () => {
    const page = read('docs/reference/testing.md')
    const points = [...transactionFaultPoints, ...operationFaultPoints, ...leasedFaultPoints, ...windowFaultPoints]
    expect(points.filter((point) => !page.includes(`\`${point}\``))).toEqual([])
  })
})

describe('every guarantee names a test that exists', () => {
  const page = read('docs/reference/guarantees.md')
  const named = [...page.matchAll(/^\| .* \| `([\w./-]+\.ts)`: (.+?) \|$/gm)].map(
    ([, path = '', title = '']) => [path, title] as const,
  )

  it('in every row of its tables', () => {
    const rows = page.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| promise'))
    expect(rows.length).toBeGreaterThan(20)
    expect(rows.filter((row) => !/ \| `[\w./-]+\.ts`: .+ \|$/.test(row))).toEqual([])
  })

  it.each(named)('%s: %s', (path, title) => {
    // A quotation mark is escaped in the source, not in the page.
    expect(read(path).replaceAll("\\'", "'")).toContain(title)
  })
})
