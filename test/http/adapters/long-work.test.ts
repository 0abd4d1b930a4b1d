// Work behind a 202 where frameworks have a say: what they have for a method, and what waits when they shut down.

import 'reflect-metadata'
import { Body, Controller, Get, Header, HttpCode, Module, Post } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import express from 'express'
import fastify from 'fastify'
import { describe, expect, it } from 'vitest'
import * as onExpress from '../../../src/http/express/index.js'
import * as onFastify from '../../../src/http/fastify/index.js'
import { IdempotentLeased, RepriseModule, reply, WorkStatus } from '../../../src/http/nest/index.js'
import { lookup, operationId, rerunKeyed } from '../../../src/idempotency/index.js'
import { type Key, scope } from '../../../src/identity/index.js'
import { gate } from '../../gate.js'
import { listening } from '../subject/listening.js'
import { openWorld } from './world.js'

const { db, post, serve, route } = await openWorld()
const recover = rerunKeyed('1h')

/** How far the record of a key is. */
async function stateOf(name: string, key = 'k-1'): Promise<string> {
  const owner = scope('north', 'POST', name)
  return (await lookup({ id: operationId(name, owner, key as Key), store: db })).state
}

/** Whether a promise is settled. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  return Promise.race([promise.then(() => true), new Promise<false>((resolve) => setImmediate(() => resolve(false)))])
}

describe('shutting down waits for work in hand', () => {
  it('Express: once the server is closed, by drain', async () => {
    const work = gate()
    const options = route()
    const handler = onExpress.idempotentLeased(db, { ...options, respond: 'async', recover }, async () => {
      await work.opened
      return reply(201)
    })
    const served = await listening((await import('node:http')).createServer(express().post('/charges', handler)))
    expect((await post(`${served.url}/charges`)).status).toBe(202)
    await served.close()
    const drained = handler.drain()
    expect([await isSettled(drained), await stateOf(options.name)]).toEqual([false, 'claimed'])
    work.open()
    expect([await drained, await stateOf(options.name)]).toEqual([0, 'succeeded'])
  })

  it('Fastify: by itself, where the plugin is registered', async () => {
    const work = gate()
    const options = route()
    const app = fastify({ forceCloseConnections: true })
    await app.register(onFastify.repriseIdempotency)
    const handler = onFastify.idempotentLeased(db, { ...options, respond: 'async', recover }, async () => {
      await work.opened
      return reply(201)
    })
    app.post('/charges', handler)
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    expect((await post(`${url}/charges`)).status).toBe(202)
    const closed = app.close()
    await expect(fetch(url)).rejects.toThrow()
    expect([await isSettled(closed), await stateOf(options.name)]).toEqual([false, 'claimed'])
    work.open()
    await closed
    expect(await stateOf(options.name)).toBe('succeeded')
  })

  it('Nest: by itself', async () => {
    const work = gate()
    const options = route()
    @Controller('charges')
    class Charges {
      @Post()
      @IdempotentLeased({ ...options, respond: 'async', recover })
      async charge() {
        await work.opened
        return { charged: true }
      }
    }
    @Module({ imports: [RepriseModule.forRoot(db)], controllers: [Charges] })
    class Application {}
    const app = await NestFactory.create(Application, { logger: false, rawBody: true, forceCloseConnections: true })
    await app.listen(0, '127.0.0.1')
    expect((await post(`${await app.getUrl()}/charges`)).status).toBe(202)
    const closed = app.close()
    expect([await isSettled(closed), await stateOf(options.name)]).toEqual([false, 'claimed'])
    work.open()
    await closed
    expect(await stateOf(options.name)).toBe('succeeded')
  })
})

it('on Nest the outcome has the status and the fields that the method has, and not those of the 202', async () => {
  const options = route()
  const work = gate()
  @Controller('reports')
  class Reports {
    @Post()
    @HttpCode(200)
    @Header('content-type', 'text/csv')
    @IdempotentLeased({ ...options, respond: 'async', recover })
    async report(@Body() body: { amount: number }) {
      await work.opened
      return `amount\n${body.amount}\n`
    }

    @Get('work/:id')
    @WorkStatus(options.name)
    status() {}

    @Get('nowhere/:id')
    @WorkStatus('nowhere')
    nowhere() {}
  }
  @Module({ imports: [RepriseModule.forRoot(db)], controllers: [Reports] })
  class Application {}
  const app = await NestFactory.create(Application, { logger: false, rawBody: true })
  await app.listen(0, '127.0.0.1')
  const url = serve({ url: await app.getUrl(), close: () => app.close() })
  const accepted = await post(`${url}/reports`)
  const at = accepted.headers.get('location') ?? ''
  expect([accepted.status, accepted.headers.get('content-type')]).toEqual([202, 'application/json; charset=utf-8'])
  work.open()
  const done = await fetch(`${url}${at}?wait=30`)
  expect([done.status, done.headers.get('content-type'), await done.text()]).toEqual([
    200,
    'text/csv; charset=utf-8',
    'amount\n7\n',
  ])
  expect((await fetch(`${url}/reports/nowhere/1`)).status).toBe(500)
})
