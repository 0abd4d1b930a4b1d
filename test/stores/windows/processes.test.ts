// Windows in processes of their own: killed with SIGKILL at every fault point, and two of them at once.

import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type WindowFaultPoint, windowFaultPoints } from '../../../src/messaging/index.js'
import { killAt } from '../../../src/testing/index.js'
import { bundleInto } from '../../bundle.js'
import { worlds } from './worlds.js'

const script = fileURLToPath(new URL('./processes/passes.mjs', import.meta.url))
const bundle = fileURLToPath(new URL(`../../../.cache/window-processes-${process.pid}`, import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'reprise-window-sink-'))
const running = new Set<ReturnType<typeof begin>['child']>()
let files = 0

beforeAll(async () => {
  const source = (path: string): string => fileURLToPath(new URL(`../../../src/${path}/index.ts`, import.meta.url))
  await bundleInto(bundle, {
    messaging: source('messaging'),
    testing: source('testing'),
    postgres: source('stores/postgres'),
    sqlite: source('stores/sqlite'),
  })
})
afterAll(() => {
  for (const child of running) child.kill('SIGKILL')
  for (const path of [bundle, folder]) rmSync(path, { recursive: true, force: true })
})

/** A sink in a file: how often it accepted. */
function freshSink() {
  files += 1
  const file = join(folder, `${files}.txt`)
  return { file, accepted: () => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').length : 0) }
}

// Node 22 calls its own SQLite experimental, and says so.
const quiet = ['--disable-warning=ExperimentalWarning']

/** A process that passes one id. */
function begin(args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const env = { ...process.env, REPRISE_FAULT: '', ...environment }
  const child = spawn(process.execPath, [...quiet, script, bundle, ...args], { env, stdio: ['pipe', 'pipe', 'pipe'] })
  running.add(child)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk
  })
  const ended = new Promise<{ signal: string | null; stderr: string }>((resolve) => {
    child.on('close', (_, signal) => {
      running.delete(child)
      resolve({ signal, stderr })
    })
  })
  const line = async (): Promise<string | undefined> => (await lines.next()).value
  return { child, line, ended }
}

/** What a process of its own says of an id. */
async function passed(args: readonly string[]): Promise<string | undefined> {
  const { line, ended } = begin(args)
  const said = await line()
  expect(await ended).toEqual({ signal: null, stderr: '' })
  return said
}

// PostgreSQL and SQLite.
describe.each(worlds.slice(0, 2))('processes with one store, on %s', (_name, inWorld) => {
  /** What the sink has accepted when the process is dead, and what the next one adds. */
  const left: Readonly<Record<WindowFaultPoint, readonly [dead: number, next: string]>> = {
    'window.checked': [0, 'accepted, remembered by store'],
    // The one place where a crash lets a duplicate through.
    'window.accepted': [1, 'accepted, remembered by store'],
    'window.marked': [1, 'duplicate'],
  }

  it.each(windowFaultPoints)('killed at %s: one is let through, or the duplicate that is stated', (point) =>
    inWorld(async ({ maker, place }) => {
      await (await maker()).migrate()
      const { file, accepted } = freshSink()
      const args = [place, file, 'a']
      const [dead, next] = left[point]
      expect(await begin(args, killAt(point)).ended).toEqual({
        signal: 'SIGKILL',
        stderr: `reprise-fault ${point}:1=kill\n`,
      })
      expect(accepted()).toBe(dead)
      expect(await passed(args)).toBe(next)
      expect(accepted()).toBe(dead + (next === 'duplicate' ? 0 : 1))
      expect(await passed(args)).toBe('duplicate')
    }),
  )

  it('both let through what is with the sink in both at once; the next drops it', () =>
    inWorld(async ({ maker, place }) => {
      await (await maker()).migrate()
      const { file, accepted } = freshSink()
      const both = [1, 2].map(() => begin([place, file, 'a', 'waits']))
      for (const { line } of both) expect(await line()).toBe('in the sink')
      // Both have asked the store, and neither has accepted.
      expect(accepted()).toBe(0)
      for (const { child } of both) child.stdin.write('go\n')
      for (const { line } of both) expect(await line()).toBe('accepted, remembered by store')
      expect(accepted()).toBe(2)
      expect(await passed([place, file, 'a'])).toBe('duplicate')
      await Promise.all(both.map(({ ended }) => ended))
    }))
})

it('without a store two processes know nothing of each other', async () => {
  const { file, accepted } = freshSink()
  for (const _ of [1, 2]) expect(await passed(['none', file, 'a'])).toBe('accepted, remembered by process')
  expect(accepted()).toBe(2)
})
