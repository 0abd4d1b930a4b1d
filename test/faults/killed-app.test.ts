// The application's process is killed with SIGKILL at every fault point of a transaction and right after COMMIT was
// written. Another process continues with its key.

import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, inject, it } from 'vitest'
import { mintKey } from '../../src/identity/index.js'
import { type ArmedFault, checkEffects, commits, killAt } from '../../src/testing/index.js'
import { type TransactionFaultPoint, transactionFaultPoints } from '../../src/transaction/index.js'
import { bundledScript } from '../bundled-script.js'
import { until } from '../servers/server-process.js'
import { type Lane, type Lanes, openLanes, parts } from './lanes.js'

const program = bundledScript(new URL('./processes/transacts.mjs', import.meta.url), {
  postgres: 'stores/postgres',
  identity: 'identity',
  testing: 'testing',
})

let world: Lanes
beforeAll(async () => {
  world = await openLanes(inject('postgresUrl'), 1)
})

/** What the ledger holds of an intent. */
const effectsOf = async (intent: string) => (await world.ledger()).filter((effect) => effect.intent === intent)

/** Another process with the same key, twice: both are handed the one result that the ledger has. */
async function takeUp(intent: string, key: string): Promise<string> {
  const results: string[] = []
  for (let n = 0; n < 2; n += 1) {
    const { signal, stdout, stderr } = await program.run([world.url, key, intent])
    expect({ signal, stderr }).toEqual({ signal: null, stderr: '' })
    results.push(stdout)
  }
  const told = { id: intent, key, verdicts: ['unknown', 'committed', 'committed'] as const, results }
  const effects = await effectsOf(intent)
  expect(checkEffects({ intents: [told], effects, parts, healed: true }).findings).toEqual([])
  return results[0] ?? ''
}

/** Through the proxy, as `pg` wants an address. */
function through({ proxy }: Lane): string {
  const url = new URL(world.url)
  url.port = String(proxy.port)
  return url.href
}

describe('the application killed -9', () => {
  // Where the outcome of the effect is known before anybody takes it up.
  const committedBefore: ReadonlySet<TransactionFaultPoint> = new Set([
    'transaction.committed',
    'transaction.resolving',
    'transaction.resolved',
  ])

  it.each(transactionFaultPoints)('at %s: one effect after another process took it up', async (point) => {
    const [intent, key] = [randomUUID(), mintKey()]
    const [lane] = world.lanes
    let cut: ArmedFault | undefined
    if (point === 'transaction.resolving' || point === 'transaction.resolved')
      cut = lane?.proxy.arm({ statement: commits, at: 'before-answer', action: 'fin' })
    const url = cut === undefined || lane === undefined ? world.url : through(lane)
    const { signal, stdout, stderr } = await program.run([url, key, intent], killAt(point))
    expect({ signal, stdout }).toEqual({ signal: 'SIGKILL', stdout: '' })
    expect(stderr).toBe(`reprise-fault ${point}:1=kill\n`)
    if (cut !== undefined) expect(cut.fired).toHaveLength(1)
    expect(await effectsOf(intent)).toHaveLength(committedBefore.has(point) ? 2 : 0)
    await takeUp(intent, key)
    await lane?.proxy.heal()
  })

  it('right after COMMIT was written: it commits all the same, and the next process gets its result', async () => {
    for (let round = 0; round < 5; round += 1) {
      const [intent, key] = [randomUUID(), mintKey()]
      const ended = await program.run([world.url, key, intent, 'dies-when-commit-is-written'])
      expect(ended).toEqual({ signal: 'SIGKILL', stdout: '', stderr: '' })
      await until(async () => (await effectsOf(intent)).length === 2, 'what the dead process wrote is carried out')
      const [effect] = await effectsOf(intent)
      expect(await takeUp(intent, key)).toBe(effect?.result)
    }
  })

  it('while COMMIT is on its way: the next process waits for it, and gets its result', async () => {
    const [intent, key] = [randomUUID(), mintKey()]
    const [lane] = world.lanes
    if (lane === undefined) return expect.unreachable()
    const armed = lane.proxy.arm({ statement: commits, at: 'before-forward', action: 'late', delayMs: 3_000 })
    const { child, ended } = program.start([through(lane), key, intent])
    await armed.first
    child.kill('SIGKILL')
    expect((await ended).signal).toBe('SIGKILL')
    expect(await effectsOf(intent)).toEqual([])
    const result = await takeUp(intent, key)
    await armed.delivered
    expect((await effectsOf(intent)).map((effect) => effect.result)).toEqual([result, result])
  })
})
