// The subject as processes of their own: bundled once, started as often as one likes, killed and stopped by their id
// alone.

import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundleInto } from '../../bundle.js'
import { type Serving, serving } from './serving.js'
import type { MountName, StartOptions } from './subject.js'

/** Starts processes. */
export interface SubjectProgram {
  start(adapter: MountName, databaseUrl: string, options?: StartOptions): Promise<Serving>
  /** Ends all processes, and removes the bundle. */
  close(): Promise<void>
}

/** Bundles the subject for processes. */
export async function subjectProgram(): Promise<SubjectProgram> {
  const bundle = fileURLToPath(new URL(`../../../.cache/http-subject-${randomUUID()}`, import.meta.url))
  await bundleInto(bundle, { main: fileURLToPath(new URL('./main.ts', import.meta.url)) }, { packages: 'external' })
  const running = new Set<Serving>()
  return {
    async start(adapter, databaseUrl, { sink } = {}) {
      const env = { ...process.env, ...(sink === undefined ? {} : { SUBJECT_SINK: sink }) }
      const child = spawn(process.execPath, [join(bundle, 'main.js'), adapter, databaseUrl], { env })
      const started = await serving(child)
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
