// The command, run from a test.

import { spawn } from 'node:child_process'
import { root } from '../markdown.js'
import { demandServer } from '../servers/missing.js'
import type { Report } from './report.js'

/** How the command ended. */
export interface Ended {
  readonly code: number | null
  /** One for each engine. */
  readonly reports: readonly Report[]
  readonly stderr: string
}

/** Whether the long runs are wanted too: `npm run test:matrix`. */
export const isLong: boolean = process.env['REPRISE_LONG'] !== undefined

/** Runs the command on some engines. */
export async function torture(
  part: 'operations' | 'messaging',
  engines: readonly string[],
  ...options: readonly string[]
): Promise<Ended> {
  if (engines.some((engine) => engine !== 'sqlite')) demandServer('PostgreSQL')
  if (engines.includes('pgbouncer')) demandServer('PgBouncer')
  const chosen = engines.flatMap((engine) => ['--engine', engine])
  const args = ['tools/run.mjs', 'torture', part, '--json', ...chosen, ...options]
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk
  })
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk
  })
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  const reports = stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Report)
  return { code, reports, stderr }
}
