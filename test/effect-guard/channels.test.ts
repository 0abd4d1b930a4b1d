import diagnostics from 'node:diagnostics_channel'
import http from 'node:http'
import net from 'node:net'
import { describe, expect, it, vi } from 'vitest'
import { eventLoopTurn } from '../../src/kernel/index.js'
import { allowEffect, type Domain, domainOf, type TransactionDefaults } from '../../src/transaction/index.js'
import { EngineError, type Script, type ScriptedHandle, scripted } from '../transaction/scripted-engine.js'
import { rejection } from '../transaction/scripted-world.js'
import { countingListener } from './counting-server.js'
import { watchedServer } from './watched-server.js'

const { server, events } = await watchedServer()

function domain(
  defaults: TransactionDefaults = {},
  script: Script = {},
): { db: Domain<ScriptedHandle>; log: string[] } {
  const engine = scripted(script)
  return { db: domainOf(engine, defaults), log: engine.log }
}

/** Sends a request by node:http and waits for the whole answer. */
const sent = (path: string, options: http.RequestOptions = {}): Promise<void> =>
  new Promise((resolve, reject) => {
    const request = http.request(server.origin + path, options, (response) => response.resume().on('end', resolve))
    request.on('error', reject).end()
  })

const ways: Record<'fetch' | 'http', (path: string) => Promise<unknown>> = {
  fetch: async (path) => (await fetch(server.origin + path)).text(),
  http: sent,
}
const each = Object.entries(ways) as [keyof typeof ways, (path: string) => Promise<unknown>][]

describe.each(each)('a request by %s in a transaction', (by, send) => {
  it('is reported, and the transaction commits', async () => {
    const { db, log } = domain()
    await db.transact(() => send('/reported'))
    expect(log).toContain('commit')
    expect(server.arrived).toEqual(['/reported'])
    expect(events).toEqual([{ domain: 'scripted', by, origin: server.origin, decision: 'reported' }])
  })

  it('keeps it from committing, though it has left, and it leaves once', async () => {
    const { db, log } = domain({ effects: 'poison' })
    const error = await rejection(db.transact(() => send('/poisoned')))
    expect(error).toMatchObject({ code: 'EFFECT_IN_TRANSACTION', details: { domain: 'scripted', by, left: true } })
    expect(log.filter((step) => step !== 'keep')).toEqual(['acquire', 'begin', 'rollback'])
    expect(server.arrived).toEqual(['/poisoned'])
    expect(events).toEqual([{ domain: 'scripted', by, origin: server.origin, decision: 'poisoned' }])
  })

  it('is not repeated when the store then fails in a way that a repeat would cure', async () => {
    const statement = (): never => {
      throw new EngineError('repeat')
    }
    const { db, log } = domain({ effects: 'poison' }, { statement })
    const body = async (tx: ScriptedHandle): Promise<void> => {
      await send('/once')
      await tx.statement()
    }
    expect(await rejection(db.transact(body))).toMatchObject({ code: 'EFFECT_IN_TRANSACTION' })
    expect(log.filter((step) => step === 'begin')).toHaveLength(1)
    expect(server.arrived).toEqual(['/once'])
  })

  it('is noticed also when the body makes it last and does not wait for it', async () => {
    const { db, log } = domain({ effects: 'poison' })
    let answered: Promise<unknown> | undefined
    const body = async (): Promise<void> => {
      await eventLoopTurn()
      answered = send('/left-behind')
    }
    expect(await rejection(db.transact(body))).toMatchObject({ code: 'EFFECT_IN_TRANSACTION' })
    await answered
    expect(server.arrived).toEqual(['/left-behind'])
    expect(log).not.toContain('commit')
  })

  it('is nobody’s business where the domain allows its origin, or ignores effects', async () => {
    for (const rule of [{ effects: 'poison', allowOrigins: [server.origin] }, { effects: 'ignore' }] as const) {
      const { db, log } = domain(rule)
      await db.transact(() => send('/allowed'))
      expect(log).toContain('commit')
    }
    expect(server.arrived).toEqual(['/allowed', '/allowed'])
    expect(events).toEqual([])
  })

  it('is reported with the reason where it is permitted', async () => {
    const { db, log } = domain({ effects: 'poison' })
    await db.transact(() => allowEffect('reads a price', () => send('/permitted')))
    expect(log).toContain('commit')
    expect(events).toEqual([
      { domain: 'scripted', by, origin: server.origin, decision: 'allowed', reason: 'reads a price' },
    ])
  })

  it('is outside before the transaction, after it, and in afterCommit', async () => {
    const { db, log } = domain({ effects: 'poison' })
    await send('/before')
    await db.transact(async (tx) => tx.afterCommit(() => send('/after-commit')))
    await send('/after')
    expect(log).toContain('commit')
    expect(server.arrived).toEqual(['/before', '/after-commit', '/after'])
    expect(events).toEqual([])
  })

  it('is outside in a timer that was started inside, once the body has settled', async () => {
    const { db, log } = domain({ effects: 'poison' })
    let late: Promise<unknown> | undefined
    await db.transact(async () => {
      late = new Promise((resolve) => setTimeout(() => resolve(send('/late')), 1))
    })
    await late
    expect(log).toContain('commit')
    expect(server.arrived).toEqual(['/late'])
    expect(events).toEqual([])
  })
})

describe('what is noticed', () => {
  it('belongs to the transaction that sent it, where several share the sockets of an agent', async () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    const [poisoned, outside] = [domain({ effects: 'poison' }), domain({ effects: 'poison' })]
    // The first holds the one socket; the others wait for it, and are sent from its end.
    const first = sent('/first', { agent })
    const inside = rejection(poisoned.db.transact(() => sent('/inside', { agent })))
    const beside = outside.db.transact(async () => eventLoopTurn())
    await Promise.all([first, sent('/third', { agent }), beside])
    expect(await inside).toMatchObject({ code: 'EFFECT_IN_TRANSACTION' })
    expect(outside.log).toContain('commit')
    expect(server.arrived.sort()).toEqual(['/first', '/inside', '/third'])
    expect(events).toHaveLength(1)
    agent.destroy()
  })

  it('is each request of a redirect', async () => {
    await domain().db.transact(() => fetch(`${server.origin}/moved`))
    expect(server.arrived).toEqual(['/moved', '/after'])
    expect(events).toHaveLength(2)
  })

  it('is a request with a body once, also one that is written in parts', async () => {
    await domain().db.transact(async () => {
      await fetch(`${server.origin}/whole`, { method: 'POST', body: 'x' })
      await new Promise<void>((resolve) => {
        const parts = http.request(`${server.origin}/parts`, { method: 'POST' }, (answer) =>
          answer.resume().on('end', resolve),
        )
        parts.write('a')
        setImmediate(() => parts.end('b'))
      })
    })
    expect(server.arrived).toEqual(['/whole', '/parts'])
    expect(events).toHaveLength(2)
  })

  it('is no traffic of another kind: a store talks over sockets of its own', async () => {
    const listener = await countingListener()
    const { db, log } = domain({ effects: 'poison' })
    await db.transact(
      () => new Promise((resolve) => net.connect(listener.port, '127.0.0.1').resume().on('close', resolve)),
    )
    await listener.close()
    expect(listener.connections()).toBe(1)
    expect(log).toContain('commit')
    expect(events).toEqual([])
  })

  it('is no data address, which is not sent anywhere', async () => {
    const { db, log } = domain({ effects: 'poison' })
    await expect(db.transact(async () => (await fetch('data:text/plain,hello')).text())).resolves.toBe('hello')
    expect(log).toContain('commit')
  })
})

describe('listening', () => {
  const channels = ['undici:request:create', 'http.client.request.created', 'http.client.request.start']

  it('throws nothing into a request, whatever the message is', async () => {
    const uncaught = vi.fn()
    const others = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException')
    process.on('uncaughtException', uncaught)
    const hostile = {
      get request(): never {
        throw new Error('hostile')
      },
    }
    const messages = [
      undefined,
      null,
      5,
      {},
      { request: 5 },
      { request: {} },
      { request: Object.create(null) },
      hostile,
    ]
    const { db } = domain({ effects: 'poison' })
    const run = db.transact(async () => {
      for (const channel of channels) for (const message of messages) diagnostics.channel(channel).publish(message)
      await eventLoopTurn()
    })
    await rejection(run)
    await eventLoopTurn()
    process.removeAllListeners('uncaughtException')
    for (const listener of others) process.on('uncaughtException', listener)
    expect(uncaught).not.toHaveBeenCalled()
  })

  it('is done once, however many domains there are', async () => {
    await Promise.all([domain(), domain(), domain()].map(({ db }) => db.transact(async () => {})))
    await domain().db.transact(() => fetch(`${server.origin}/one`))
    expect(events).toHaveLength(1)
  })
})
