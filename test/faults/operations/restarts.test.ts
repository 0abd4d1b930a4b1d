// The store goes away in the middle of work and comes back: nothing is lost, nothing happens twice, and nobody hangs.

import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type CallVerdict, checkEffects, type IntentRecord } from '../../../src/testing/index.js'
import { type Postgres, startPostgres } from '../../servers/postgres.js'
import { until } from '../../servers/server-process.js'
import { type OperationName, operationNames, parts } from './definitions.js'
import { keepTable } from './fault-table.js'
import { openStage, type Stage, type StagedStore, type Tried, wanted } from './stage.js'
import { effectsOf } from './taking-up.js'

const callLimitMs = 4_000
/** Beyond its deadline a call may take a lease, and what a busy machine takes. */
const slackMs = 30_000

let server: Postgres
let stage: Stage
beforeAll(async () => {
  server = await startPostgres({ fsync: false, settings: { max_connections: '60' } })
  stage = await openStage(server.url)
})
afterAll(() => server.dispose())

/** Callers at work: each wants one intent after the other, and repeats a call until it has its result. */
class Callers {
  readonly intents: { readonly tried: Tried; readonly verdicts: CallVerdict[]; readonly results: string[] }[] = []
  readonly codes = new Map<string, number>()
  underWay = 0
  done = 0
  #stopped = false
  #longestMs = 0
  readonly #store: StagedStore
  readonly #work: Promise<unknown>

  constructor(store: StagedStore, count: number) {
    this.#store = store
    // What is held would need a person: that is shown elsewhere.
    const names = operationNames.filter((name) => name !== 'charge-hold')
    const all = Array.from({ length: count }, (_, index) => this.#calls(names[index % names.length] ?? 'book'))
    this.#work = Promise.all(all)
  }

  get longestMs(): number {
    return this.#longestMs
  }

  async #calls(name: OperationName): Promise<void> {
    while (!this.#stopped) {
      const tried = wanted(name)
      const intent = { tried, verdicts: [], results: [] }
      this.intents.push(intent)
      await this.#untilDone(intent)
    }
  }

  async #untilDone({ tried, verdicts, results }: Callers['intents'][number]): Promise<void> {
    const { intent, key } = tried
    for (let calls = 0; calls < 30 && verdicts.at(-1) !== 'committed'; calls += 1) {
      const beganMs = performance.now()
      this.underWay += 1
      try {
        results.push(await this.#store.operationOf(tried)({ intent, key }, { deadline: callLimitMs }))
        verdicts.push('committed')
        this.done += 1
      } catch (error) {
        verdicts.push('unknown')
        const code = String((error as { readonly code?: unknown }).code)
        this.codes.set(code, (this.codes.get(code) ?? 0) + 1)
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      this.underWay -= 1
      this.#longestMs = Math.max(this.#longestMs, performance.now() - beganMs)
    }
  }

  /** Waits until some more intents are through. */
  async more(count: number): Promise<void> {
    const from = this.done
    await until(() => this.done >= from + count, `${count} more intents are through`)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#work
  }
}

/** What the checker says about all that was wanted. */
async function judge(store: StagedStore, callers: Callers) {
  for (const name of ['book', 'charge']) {
    const mine = callers.intents.filter(({ tried }) => tried.operation.startsWith(name))
    const intents: IntentRecord[] = mine.map(({ tried, verdicts, results }) => ({
      id: tried.intent,
      key: tried.key,
      verdicts,
      results,
    }))
    const effects =
      name === 'book'
        ? (await store.ledger()).filter(({ intent }) => intents.some(({ id }) => id === intent))
        : (await Promise.all(mine.map(({ tried }) => effectsOf(stage, store, tried)))).flat()
    const run = { intents, effects, healed: true, ...(name === 'book' ? { parts } : {}) }
    const { findings, endedAs } = checkEffects(run)
    expect(findings).toEqual([])
    expect(endedAs.committed).toBe(intents.length)
    expect(intents.length).toBeGreaterThan(5)
  }
}

const rows = new Map<string, readonly string[]>()

async function through(store: StagedStore, fault: string, strike: (callers: Callers) => Promise<void>): Promise<void> {
  const callers = new Callers(store, 9)
  try {
    await callers.more(30)
    await strike(callers)
    await callers.more(30)
  } finally {
    await callers.stop()
  }
  await judge(store, callers)
  expect(callers.longestMs).toBeLessThan(callLimitMs + slackMs)
  const codes = [...callers.codes].map(([code, count]) => `${code} ${count}`).join(', ')
  console.log(`${store.name}, ${fault}: ${callers.intents.length} intents, errors: ${codes || 'none'}`)
  rows.set(fault, [fault, store.name, 'its result, if need be after repeats', '1 each', 'repeats of the calls'])
}

describe('a store that goes away in the middle of work', () => {
  const ends = {
    'stopped in good order (SIGINT), and started': () => server.stop('fast'),
    'stopped at once (SIGQUIT), and started': () => server.stop('immediate'),
    'killed (SIGKILL), and started': () => server.kill9(),
  }
  it.each(Object.entries(ends))('PostgreSQL %s', async (name, end) => {
    const { pid } = server
    await through(stage.stores.PostgreSQL, name, async (callers) => {
      expect(callers.underWay).toBeGreaterThan(0)
      await end()
      // Somebody was told that it is gone, and nobody gets anything meanwhile.
      await until(() => callers.codes.size > 0, 'a caller is told')
      await server.restart()
      expect(server.pid).not.toBe(pid)
    })
  })

  it.each(['IMMEDIATE', 'EXCLUSIVE'])('SQLite, whose file another process locks: BEGIN %s', async (lock) => {
    const store = stage.stores.SQLite
    await through(store, `file locked by another process (BEGIN ${lock}) for 2.5 s`, async (callers) => {
      const holder = await lockFile(store, lock)
      // What was committed just before is heard of first.
      let before = -1
      await until(async () => {
        const heard = callers.done === before
        before = callers.done
        await new Promise((resolve) => setTimeout(resolve, 200))
        return heard
      }, 'nobody hears of anything any more')
      await new Promise((resolve) => setTimeout(resolve, 2_000))
      expect(callers.done).toBe(before)
      expect(callers.underWay).toBeGreaterThan(0)
      holder.stdin?.write('\n')
    })
  })

  it('is written down', () => {
    const head = ['the store is', 'store', 'callers get', 'effects', 'settled by']
    keepTable('restarts', head, [...rows.values()])
  })
})

const children = new Set<ChildProcess>()
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
})

/** Another process that holds the lock of the file until it is sent a line. */
async function lockFile({ address }: StagedStore, lock: string): Promise<ChildProcess> {
  const script = fileURLToPath(new URL('./processes/locks.mjs', import.meta.url))
  const child = spawn(process.execPath, [script, 'sqlite' in address ? address.sqlite : '', lock], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  children.add(child)
  const lines = createInterface({ input: child.stdout })
  const line = await new Promise((resolve) => lines.once('line', resolve))
  expect(line).toBe('held')
  return child
}
