// What the guide says is not seen is not seen, and what it says is seen although it is unusual is.

import { execFile } from 'node:child_process'
import dgram from 'node:dgram'
import { mkdtempSync, rmSync } from 'node:fs'
import http, { ClientRequest, createServer } from 'node:http'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { afterEach, describe, expect, it } from 'vitest'
import { domainOf, type TransactionDefaults } from '../../src/transaction/index.js'
import { scripted } from '../transaction/scripted-engine.js'
import { rejection } from '../transaction/scripted-world.js'
import { watchedServer } from './watched-server.js'

const { server, events } = await watchedServer()

const inside = <Result>(work: () => Promise<Result>, defaults: TransactionDefaults = {}): Promise<Result> =>
  domainOf(scripted(), { effects: 'poison', ...defaults }).transact(work)

const answered = (request: ClientRequest): Promise<void> =>
  new Promise((resolve, reject) => {
    request.on('response', (answer) => answer.resume().on('end', resolve))
    request.on('error', reject).end()
  })

describe('not seen', () => {
  afterEach(() => expect(events).toEqual([]))

  it('HTTP/2', async () => {
    let streams = 0
    const counting = http2.createServer((_request, response) => {
      streams += 1
      response.end('ok')
    })
    await new Promise<void>((resolve) => counting.listen(0, '127.0.0.1', resolve))
    const session = http2.connect(`http://127.0.0.1:${(counting.address() as AddressInfo).port}`)
    await inside(() => new Promise((resolve) => session.request({ ':path': '/' }).resume().on('end', resolve)))
    expect(streams).toBe(1)
    session.destroy()
    await new Promise((resolve) => counting.close(resolve))
  })

  it('datagrams', async () => {
    const receiver = dgram.createSocket('udp4')
    await new Promise<void>((resolve) => receiver.bind(0, '127.0.0.1', resolve))
    const received = new Promise((resolve) => receiver.once('message', (bytes) => resolve(String(bytes))))
    const sender = dgram.createSocket('udp4')
    await inside(
      () => new Promise((resolve) => sender.send('hello', receiver.address().port, '127.0.0.1', () => resolve('sent'))),
    )
    expect(await received).toBe('hello')
    sender.close()
    receiver.close()
  })

  it('worker threads', async () => {
    const code = "fetch(require('node:worker_threads').workerData)"
    await inside(async () => {
      const worker = new Worker(code, { eval: true, workerData: `${server.origin}/worker` })
      await new Promise((resolve) => worker.once('exit', resolve))
    })
    expect(server.arrived).toEqual(['/worker'])
  })

  it('child processes', async () => {
    await inside(() => promisify(execFile)(process.execPath, ['-e', `fetch('${server.origin}/child')`]))
    expect(server.arrived).toEqual(['/child'])
  })
})

describe('seen all the same', () => {
  it('a ClientRequest that is made by hand', async () => {
    const { port } = new URL(server.origin)
    const send = (): Promise<void> => answered(new ClientRequest({ host: '127.0.0.1', port, path: '/by-hand' }))
    expect(await rejection(inside(send))).toMatchObject({ code: 'EFFECT_IN_TRANSACTION' })
    expect(server.arrived).toEqual(['/by-hand'])
  })

  it('a socket of this machine, whose path stands for the origin', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'effects-'))
    const socketPath = join(folder, 'agent.sock')
    let arrived = 0
    const agent = createServer((_request, response) => {
      arrived += 1
      response.end()
    })
    await new Promise<void>((resolve) => agent.listen(socketPath, resolve))
    const send = (): Promise<void> => answered(http.request({ socketPath, path: '/traces' }))
    await inside(send, { allowOrigins: [`unix:${socketPath}`] })
    expect(events).toEqual([])
    expect(await rejection(inside(send))).toMatchObject({ code: 'EFFECT_IN_TRANSACTION' })
    expect(events).toMatchObject([{ origin: `unix:${socketPath}`, decision: 'poisoned' }])
    expect(arrived).toBe(2)
    agent.closeAllConnections()
    await new Promise((resolve) => agent.close(resolve))
    rmSync(folder, { recursive: true })
  })

  it('a request whose Host header names another host, without an origin', async () => {
    const headers = { host: 'other.example' }
    const send = (): Promise<void> => answered(http.request(`${server.origin}/other`, { headers }))
    await inside(send, { effects: 'report', allowOrigins: [server.origin] })
    expect(events).toEqual([{ domain: 'scripted', by: 'http', decision: 'reported' }])
  })
})
