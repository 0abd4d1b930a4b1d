// Windows in processes of their own: killed with SIGKILL at every fault point, and two of them at once.

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, describe, expect, it } from 'vitest'
import { type WindowFaultPoint, windowFaultPoints } from '../../../src/messaging/index.js'
import { killAt } from '../../../src/testing/index.js'
import { bundledScript } from '../../bundled-script.js'
import { worlds } from './worlds.js'

const passes = bundledScript(
  new URL('./processes/passes.mjs', import.meta.url),
  { messaging: 'messaging', testing: 'testing', postgres: 'stores/postgres', sqlite: 'stores/sqlite' },
  // Node 22 calls its own SQLite experimental, and says so.
  ['--disable-warning=ExperimentalWarning'],
)
const folder = mkdtempSync(join(tmpdir(), 'reprise-window-sink-'))
let files = 0

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A sink in a file: how often it accepted. */
function freshSink() {
  files += 1
  const file = join(folder, `${files}.txt`)
  return { file, accepted: () => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').length : 0) }
}

/** A process that passes one id. */
function begin(args: readonly string[], environment?: Readonly<Record<string, string>>) {
  const { child, ended } = passes.start(args, environment)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const line = async (): Promise<string | undefined> => (await lines.next()).value
  return { child, line, ended }
}

/** What a process of its own says of an id. */
async function passed(args: readonly string[]): Promise<string | undefined> {
  const { line, ended } = begin(args)
  const said = await line()
  expect(await ended).toMatchObject({ signal: null, stderr: '' })
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
      expect(await begin(args, killAt(point)).ended).toMatchObject({
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
