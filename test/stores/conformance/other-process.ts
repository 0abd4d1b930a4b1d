// Drivers that need a newer Node than this one may be: another process runs all cases, and says how each one ended.

import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { CaseOutcome } from '../../../src/testing/index.js'
import { findSqliteDrivers } from '../../../tools/sqlite-drivers.mjs'
import { bundleInto } from '../../bundle.js'
import type { StoreUnderTest } from './store-under-test.js'

const root = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '')

/** How long all cases may take; less than a test may, so that the test says which case did not end. */
const limitMs = 250_000

/** What the other process says: first what it runs on, then a line for each case. */
type Line =
  | { readonly about: string }
  | { readonly id: string; readonly outcome?: CaseOutcome; readonly error?: string }

/** How the other process went. */
interface Report {
  readonly about: string
  /** How it ended, such as `code 0` or `SIGSEGV`. */
  readonly ended: string
  readonly cases: ReadonlyMap<string, { readonly outcome?: CaseOutcome; readonly error?: string }>
}

/** SQLite with a driver that another process loads. The process is started once, by the first case. */
export function inAnotherProcess(driver: 'node:sqlite' | 'better-sqlite3'): StoreUnderTest {
  let running: Promise<Report> | undefined
  let about = 'not started'
  return {
    name: `sqlite (${driver})`,
    about: () => about,
    async run({ id }) {
      const drivers = findSqliteDrivers(root)
      if ('why' in drivers) {
        about = drivers.why
        return `refused: ${drivers.why}`
      }
      running ??= runCases(drivers.node, driver, drivers.folder)
      const report = await running
      about = report.about
      const { outcome, error } = report.cases.get(id) ?? {}
      if (outcome !== undefined) return outcome
      throw new Error(error ?? `the process ended (${report.ended}) before this case did`)
    },
  }
}

async function runCases(node: string, driver: string, folder: string): Promise<Report> {
  const bundle = await bundled()
  try {
    const script = fileURLToPath(new URL('./processes/sqlite-cases.mjs', import.meta.url))
    const child = spawn(node, ['--disable-warning=ExperimentalWarning', script, bundle, driver, folder], {
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: limitMs,
    })
    const [output, ended] = await Promise.all([
      text(child.stdout),
      new Promise<string>((resolve, reject) => {
        child.once('error', reject)
        child.once('exit', (code, signal) => resolve(signal ?? `code ${code}`))
      }),
    ])
    const lines = output
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Line)
    const about = lines.find((line) => 'about' in line)?.about ?? 'a process that said nothing'
    return { about, ended, cases: new Map(lines.flatMap((line) => ('id' in line ? [[line.id, line]] : []))) }
  } finally {
    rmSync(bundle, { recursive: true })
  }
}

/**
 * The cases and the world as JavaScript, from the sources as they are: a folder with `sqlite-world.js` and
 * `testing.js`.
 */
async function bundled(): Promise<string> {
  mkdirSync(join(root, '.cache'), { recursive: true })
  const outdir = mkdtempSync(join(root, '.cache', 'conformance-'))
  await bundleInto(outdir, {
    'sqlite-world': fileURLToPath(new URL('./sqlite-world.ts', import.meta.url)),
    testing: join(root, 'src', 'testing', 'index.ts'),
  })
  return outdir
}
