// The guard in its own process, started as a user starts it, and the same program without it. A server counts the
// requests that arrive.

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type CountingListener, type CountingServer, countingListener, countingServer } from './counting-server.js'

interface Came {
  readonly outside: string
  readonly inside: string
  readonly swallowed: string
  readonly permitted: string
  readonly afterCommit: string
}

interface Run {
  readonly names: readonly string[]
  readonly came: Readonly<Record<string, Came>>
  readonly late: string
  readonly marked: string
  readonly allowed: string
  /** What arrived, by the last part of the path. */
  readonly arrived: Readonly<Record<string, number>>
  readonly connections: number
}

const program = fileURLToPath(new URL('./processes/guarded.mjs', import.meta.url))
const guard = ['--import', 'reprise/effect-guard']
const [httpCalls, httpsCalls] = [7, 2]

let server: CountingServer
let listener: CountingListener
beforeAll(async () => {
  server = await countingServer()
  listener = await countingListener()
})
afterAll(async () => {
  await server.close()
  await listener.close()
})

async function run(options: readonly string[], again = ''): Promise<Run> {
  server.arrived.length = 0
  const before = listener.connections()
  const args = [...options, program, server.origin, String(listener.port), again]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  const arrived: Record<string, number> = {}
  for (const path of server.arrived) {
    const kind = path.slice(path.lastIndexOf('/') + 1)
    arrived[kind] = (arrived[kind] ?? 0) + 1
  }
  return { ...JSON.parse(stdout), arrived, connections: listener.connections() - before }
}

describe('a program that sends from inside transactions', () => {
  it('sends everything without the guard, so that the counting is known to count', async () => {
    const { came, arrived, connections, late, marked, allowed } = await run([])
    expect(Object.keys(came)).toHaveLength(httpCalls + httpsCalls)
    for (const call of Object.values(came)) {
      expect(call).toEqual({
        outside: 'done',
        inside: 'done',
        swallowed: 'done',
        permitted: 'done',
        afterCommit: 'done',
      })
    }
    expect(arrived).toEqual({
      outside: httpCalls,
      inside: httpCalls,
      swallowed: httpCalls,
      permitted: httpCalls,
      'after-commit': httpCalls,
      timer: 1,
      origin: 1,
    })
    expect(connections).toBe(5 * httpsCalls)
    expect([late, marked, allowed]).toEqual(['done', 'done', 'done'])
  })

  it.each([
    ['once', ''],
    ['twice', 'again'],
  ])('sends nothing from inside one with the guard, loaded %s, and all the rest', async (_times, again) => {
    const { came, arrived, connections, late, marked, allowed } = await run(guard, again)
    expect(Object.keys(came)).toHaveLength(httpCalls + httpsCalls)
    const refused = 'EFFECT_IN_TRANSACTION'
    for (const call of Object.values(came)) {
      expect(call).toEqual({
        outside: 'done',
        inside: refused,
        swallowed: refused,
        permitted: 'done',
        afterCommit: 'done',
      })
    }
    expect(arrived).toEqual({
      outside: httpCalls,
      permitted: httpCalls,
      'after-commit': httpCalls,
      timer: 1,
      origin: 1,
    })
    expect(connections).toBe(3 * httpsCalls)
    expect([late, marked, allowed]).toEqual(['done', refused, 'done'])
  })

  it('finds the calls with the names and lengths they had', async () => {
    const [without, guarded] = [await run([]), await run(guard)]
    expect(guarded.names).toEqual(without.names)
    expect(guarded.names).toContain('fetch/1')
  })
})
