// The subject as processes of their own: bundled once, started as often as one likes, killed and stopped by their id alone.

import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { AdapterName, StartOptions } from './subject.js'

/** A process that serves the subject. */
interface SubjectProcess {
  /** Where, without a slash at the end. */
  readonly url: string
  readonly child: ChildProcess
  /** What it wrote to its error output so far. */
  said(): string
  /** Kills it (SIGKILL), and settles when it has ended. */
  kill(): Promise<void>
}

/** Starts processes. */
export interface SubjectProgram {
  start(adapter: AdapterName, databaseUrl: string, options?: StartOptions): Promise<SubjectProcess>
  /** Ends all processes, and removes the bundle. */
  close(): Promise<void>
}

/** Bundles the subject for processes. */
export async function subjectProgram(): Promise<SubjectProgram> {
  const bundle = fileURLToPath(new URL(`../../../.cache/http-subject-${randomUUID()}`, import.meta.url))
  await build({
    entryPoints: { main: fileURLToPath(new URL('./main.ts', import.meta.url)) },
    outdir: bundle,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'error',
  })
  const running = new Set<SubjectProcess>()
  return {
    async start(adapter, databaseUrl, { sink } = {}) {
      const env = { ...process.env, ...(sink === undefined ? {} : { SUBJECT_SINK: sink }) }
      const child = spawn(process.execPath, [join(bundle, 'main.mjs'), adapter, databaseUrl], { env })
      const started = await ready(child)
      running.add(started)
      child.once('exit', () => running.delete(started))
      return started
    },
    async close() {
      await Promise.all([...running].map((one) => one.kill()))
      rmSync(bundle, { recursive: true, force: true })
    },
  }
}

async function ready(child: ChildProcess): Promise<SubjectProcess> {
  let errors = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const url = await new Promise<string>((resolve, reject) => {
    let output = ''
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output += text
      const line = /^ready (\S+)\n/m.exec(output)
      if (line?.[1] !== undefined) resolve(line[1])
    })
    void ended.then(() => reject(new Error(`The subject ended before it was ready.\n${errors}`)))
  })
  return {
    url,
    child,
    said: () => errors,
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
  }
}
