import { type ChildProcess, spawn } from 'node:child_process'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { httpClient } from '../../src/http/client/index.js'
import { constantDelay } from '../../src/retry/index.js'

// Three attempts in this process times three in the other: what arrives at the sink is counted there.
describe('two processes, three times three attempts', () => {
  let sink: Server
  let middle: ChildProcess
  let middleUrl = ''
  let arrived = 0
  const events: unknown[] = []

  beforeEach(async () => {
    arrived = 0
    events.length = 0
    sink = createServer((_request, response) => {
      arrived += 1
      response.writeHead(500).end()
    })
    await new Promise<void>((resolve) => sink.listen(0, '127.0.0.1', resolve))
    const { port } = sink.address() as AddressInfo
    const program = fileURLToPath(new URL('./processes/middle.mjs', import.meta.url))
    middle = spawn(process.execPath, [program, `http://127.0.0.1:${port}/`], { stdio: ['pipe', 'pipe', 'inherit'] })
    const lines = createInterface({ input: middle.stdout as NodeJS.ReadableStream })
    middleUrl = await new Promise<string>((resolve) => lines.once('line', resolve))
    lines.on('line', (line) => events.push(JSON.parse(line)))
  })

  afterEach(async () => {
    middle.stdin?.end()
    await new Promise((resolve) => middle.once('exit', resolve))
    await new Promise((resolve) => sink.close(resolve))
  })

  const call = async (trusts: string[]) => {
    const client = httpClient({
      budget: false,
      trusts,
      policy: { attempts: 3, backoff: constantDelay(1), layer: 'own' },
    })
    return (await client.fetch(middleUrl)).status
  }

  it('make three calls where the caller is trusted, and the product is reported', async () => {
    expect(await call([new URL(middleUrl).origin])).toBe(500)
    expect(arrived).toBe(3)
    const meeting = { policy: 'http', kind: 'policy', depth: 2, declared: 9, allowed: 1, allowance: 3, spent: 0 }
    expect(events).toEqual(Array(3).fill(meeting))
  })

  it('make nine where nobody says who repeats: the multiplication is real', async () => {
    expect(await call([])).toBe(500)
    expect(arrived).toBe(9)
    expect(events).toEqual([])
  })
})
