// The app of docs/guides/next-js.md, in a project of its own: Next is copied there, and the tarball installed.

import { spawn, spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort, until } from '../../servers/server-process.js'
import { installTarball, platformModules } from './platform-packages.js'

const fixtures = fileURLToPath(new URL('fixtures/next', import.meta.url))

/** A running server of Next. */
export interface NextServer {
  readonly url: string
  /** What it has written so far. */
  said(): string
  /** Ends it and waits for its end. */
  end(signal: NodeJS.Signals): Promise<void>
}

/** A project with the app. */
export interface NextApp {
  readonly folder: string
  /** Runs `next build`, and answers what it wrote. */
  build(): string
  /** Starts `next start` or `next dev`. */
  serve(how: 'start' | 'dev', env: Readonly<Record<string, string>>): Promise<NextServer>
  remove(): void
}

/** Makes a project with the app. */
export function nextApp(): NextApp {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-next-'))
  installTarball(folder)
  // A link would lead out of the project, where Next does not follow.
  cpSync(platformModules, join(folder, 'node_modules'), { recursive: true, verbatimSymlinks: true })
  cpSync(fixtures, folder, { recursive: true })
  const script = join(folder, 'node_modules', 'next', 'dist', 'bin', 'next')
  const environment = { ...process.env, NODE_ENV: undefined, NEXT_TELEMETRY_DISABLED: '1' }
  return {
    folder,
    build: () => {
      const options = { cwd: folder, encoding: 'utf8', env: environment } as const
      const { status, stdout, stderr } = spawnSync(process.execPath, [script, 'build'], options)
      if (status !== 0) throw new Error(stdout + stderr)
      return stdout + stderr
    },
    serve: async (how, env) => {
      const port = await freePort()
      const child = spawn(process.execPath, [script, how, '-p', String(port), '-H', '127.0.0.1'], {
        cwd: folder,
        env: { ...environment, ...env },
        detached: true,
      })
      let said = ''
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8').on('data', (chunk: string) => {
          said += chunk
        })
      }
      let isOver = false
      child.once('close', () => {
        isOver = true
      })
      await until(() => said.includes('Ready in') || isOver, `next ${how}`)
      if (isOver) throw new Error(said)
      return {
        url: `http://127.0.0.1:${port}`,
        said: () => said,
        // With the processes that it started, which are of its group.
        end: async (signal) => {
          if (!isOver) process.kill(-(child.pid ?? 0), signal)
          await until(() => isOver, `the end of next ${how}`)
        },
      }
    },
    remove: () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }),
  }
}
