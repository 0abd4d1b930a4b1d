// A script that the tests of a file start in processes of its own, with parts of the package bundled for it.

import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll } from 'vitest'
import { bundleInto } from './bundle.js'

/** How a process ended, and what it has written. */
interface EndedProcess {
  readonly signal: string | null
  readonly stdout: string
  readonly stderr: string
}

/** A process of the script. */
interface ScriptProcess {
  readonly child: ChildProcessWithoutNullStreams
  readonly ended: Promise<EndedProcess>
  /** What it has written to stderr so far. */
  said(): string
}

/** Starts processes of a script, which end with the tests at the latest. */
export interface BundledScript {
  /** Where the bundle is: the first argument of each process. */
  readonly folder: string
  /** Starts one. No fault is armed in it unless the environment says so. */
  start(args: readonly string[], environment?: Readonly<Record<string, string>>): ScriptProcess
  /** Starts one, and waits until it has ended. */
  run(args: readonly string[], environment?: Readonly<Record<string, string>>): Promise<EndedProcess>
}

/**
 * Bundles for a script before the tests of a file, and removes that after them. To be called where tests are defined.
 *
 * @param parts Folders of `src`, by the names under which the script imports them.
 * @param flags Of Node. Default: none.
 */
export function bundledScript(
  script: URL,
  parts: Readonly<Record<string, string>>,
  flags: readonly string[] = [],
): BundledScript {
  const folder = fileURLToPath(new URL(`../.cache/script-${randomUUID()}`, import.meta.url))
  const running = new Set<ChildProcess>()
  beforeAll(() => {
    const source = (part: string): string => fileURLToPath(new URL(`../src/${part}/index.ts`, import.meta.url))
    return bundleInto(folder, Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, source(part)])))
  })
  afterAll(() => {
    for (const child of running) child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  const start: BundledScript['start'] = (args, environment = {}) => {
    const env = { ...process.env, REPRISE_FAULT: '', ...environment }
    const child = spawn(process.execPath, [...flags, fileURLToPath(script), folder, ...args], { env })
    running.add(child)
    let [stdout, stderr] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      stdout += chunk
    })
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      stderr += chunk
    })
    const ended = new Promise<EndedProcess>((resolve) => {
      child.on('close', (_, signal) => {
        running.delete(child)
        resolve({ signal, stdout: stdout.trim(), stderr })
      })
    })
    return { child, ended, said: () => stderr }
  }
  return { folder, start, run: (args, environment) => start(args, environment).ended }
}
