// Tables in the documentation that are made from data: what stands between two marks in a page is what the code says.

import type { ClassificationRow, Evidence, Manifest, TableWord } from '../src/atomicity/index.js'
import { callbackClassification, callbackManifests } from '../src/stores/callback/index.js'
import { memoryClassification, memoryManifest } from '../src/stores/memory/index.js'
import { postgresClassification, postgresManifest } from '../src/stores/postgres/index.js'
import { type FindingRow, postgresFindings, sharedFindings, sqliteFindings } from '../src/stores/sql/index.js'
import { sqliteClassification, sqliteManifest } from '../src/stores/sqlite/index.js'
import {
  type ConformanceCase,
  controlledHttpCases,
  emitCases,
  httpCases,
  keyCases,
  operationCases,
  recordCases,
  rowCases,
  sequenceCases,
  transactionCases,
} from '../src/testing/index.js'
import { runnerClassification } from '../src/transaction/index.js'
import { appLinesTable } from './e2e/apps/changed-lines.js'
import { peerCaseTable, peerSeenTable, peerTable } from './http-peers.js'

/** A table of a page, by the name that stands in its marks. */
export interface MadeTable {
  /** The page, from the root of the repository. */
  readonly page: string
  /** The name in the marks. */
  readonly name: string
  /** The lines between them. */
  readonly lines: () => readonly string[]
}

const manifests: readonly (readonly [store: string, manifest: Manifest])[] = [
  ['memory', memoryManifest],
  ['SQLite', sqliteManifest],
  ['PostgreSQL', postgresManifest],
  ['callback on PostgreSQL', callbackManifests.postgres],
  ['callback on SQLite', callbackManifests.sqlite],
]

/** Every table that is made. */
export const madeTables: readonly MadeTable[] = [
  { page: 'docs/reference/stores.md', name: 'manifests', lines: manifestTable },
  { page: 'docs/reference/stores.md', name: 'reasons', lines: reasonTable },
  { page: 'docs/reference/stores.md', name: 'memory', lines: () => classificationTable(memoryClassification) },
  {
    page: 'docs/reference/classification-sqlite.md',
    name: 'sqlite',
    lines: () => classificationTable(sqliteClassification),
  },
  {
    page: 'docs/reference/classification-postgres.md',
    name: 'postgres',
    lines: () => classificationTable(postgresClassification),
  },
  { page: 'docs/reference/stores.md', name: 'callback', lines: () => classificationTable(callbackClassification) },
  {
    page: 'docs/reference/doctor.md',
    name: 'postgres-findings',
    lines: () => findingTable({ ...postgresFindings, ...sharedFindings }),
  },
  {
    page: 'docs/reference/doctor.md',
    name: 'sqlite-findings',
    lines: () => findingTable({ ...sqliteFindings, ...sharedFindings }),
  },
  { page: 'docs/reference/transactions.md', name: 'runner', lines: () => classificationTable(runnerClassification) },
  { page: 'docs/reference/testing.md', name: 'conformance', lines: conformanceTable },
  { page: 'docs/reference/conformance.md', name: 'http-cases', lines: httpCaseTable },
  { page: 'docs/reference/conformance.md', name: 'controlled-http-cases', lines: controlledHttpCaseTable },
  {
    page: 'docs/guides/make-an-existing-handler-repeatable.md',
    name: 'app-lines',
    lines: () => table(...appLinesTable()),
  },
  { page: 'docs/reference/peers-http.md', name: 'http-peers', lines: () => table(...peerTable()) },
  { page: 'docs/reference/peers-http.md', name: 'http-peer-cases', lines: () => table(...peerCaseTable()) },
  { page: 'docs/reference/peers-http.md', name: 'http-peers-seen', lines: () => table(...peerSeenTable()) },
]

/** The page with the made table in the place of what stands between its marks. Refuses a page without them. */
export function withTable(text: string, name: string, lines: readonly string[]): string {
  const [start, end] = [`<!-- made: ${name} -->\n`, '\n<!-- end -->']
  const from = text.indexOf(start)
  const to = text.indexOf(end, from)
  if (from < 0 || to < 0) throw new Error(`the page has no place for the table ${name}`)
  return `${text.slice(0, from + start.length)}\n${lines.join('\n')}\n${text.slice(to)}`
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)]
}

function manifestTable(): readonly string[] {
  const { engine: _engine, because: _because, ...capabilities } = memoryManifest
  const rows = Object.keys(capabilities).map((name) => [
    `\`${name}\``,
    ...manifests.map(([, manifest]) => [manifest[name as keyof typeof capabilities]].flat().join(', ')),
  ])
  return table(['capability', ...manifests.map(([store]) => store)], rows)
}

function reasonTable(): readonly string[] {
  const rows = manifests.flatMap(([store, { because }]) =>
    Object.entries(because).map(([name, why]) => [store, `\`${name}\``, why]),
  )
  return table(['store', 'capability', 'the fact behind it'], rows)
}

function classificationTable(rows: readonly ClassificationRow[]): readonly string[] {
  const word = (ruling: TableWord | undefined): string => ruling ?? '–'
  return table(
    ['sign', 'what it is', 'connecting', 'body', 'committing', 'why', 'triggered in a test / not producible and why'],
    rows.map(({ sign, name, connecting, body, committing, why, evidence }) => [
      `\`${sign}\``,
      name,
      word(connecting),
      word(body),
      word(committing),
      why,
      evidenceText(evidence),
    ]),
  )
}

function findingTable(findings: Readonly<Record<string, FindingRow>>): readonly string[] {
  const rows = Object.entries(findings).map(([code, { severity, what, fix }]) => [`\`${code}\``, severity, what, fix])
  return table(['code', 'severity', 'what', 'fix'], rows)
}

function evidenceText(evidence: Evidence): string {
  return 'triggered' in evidence ? `triggered: “${evidence.triggered}”` : `not producible: ${evidence.notProducible}`
}

function conformanceTable(): readonly string[] {
  const cell = ({ deniedBy }: Pick<ConformanceCase, 'deniedBy'>, manifest: Manifest): string =>
    deniedBy?.(manifest) === undefined ? 'run' : 'refused'
  const rows = [
    ...transactionCases,
    ...keyCases,
    ...rowCases,
    ...recordCases,
    ...operationCases,
    ...sequenceCases,
    ...emitCases,
  ].map((subject) => [`\`${subject.id}\``, subject.title, ...manifests.map(([, manifest]) => cell(subject, manifest))])
  return table(['case', 'what a store does', ...manifests.map(([store]) => store)], rows)
}

function httpCaseTable(): readonly string[] {
  const rows = httpCases.map(({ id, title, proves, routes, places = 1 }) => [
    `\`${id}\``,
    title,
    proves,
    [...routes.map((route) => `\`${route}\``), ...(places > 1 ? [`${places} processes`] : [])].join(', '),
  ])
  return table(['case', 'what a server does', 'what it is for', 'needs'], rows)
}

function controlledHttpCaseTable(): readonly string[] {
  const rows = controlledHttpCases.map(({ id, title, proves, needs }) => [`\`${id}\``, title, proves, needs.join(', ')])
  return table(['case', 'what a server does', 'what it is for', 'in the tester’s hands'], rows)
}
