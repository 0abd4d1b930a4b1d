import 'reflect-metadata'
import { Readable } from 'node:stream'
import {
  type ArgumentsHost,
  BadRequestException,
  Body,
  Catch,
  Controller,
  type ExceptionFilter,
  Header,
  HttpCode,
  type HttpException,
  Module,
  Next,
  Param,
  ParseIntPipe,
  type PipeTransform,
  Post,
  Redirect,
  Render,
  Res,
  SetMetadata,
  StreamableFile,
  type Type,
} from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import type { Response as ExpressResponse } from 'express'
import { describe, expect, it } from 'vitest'
import {
  AnswerError,
  Call,
  Idempotent,
  IdempotentLeased,
  RepriseModule,
  reply,
  Tx,
} from '../../../src/http/nest/index.js'
import { hold, type Lease } from '../../../src/idempotency/index.js'
import type { SqliteClient, SqliteTransaction } from '../../../src/stores/sqlite/index.js'
import { openWorld } from './world.js'

const { db, post, route: whole, rows, serve } = await openWorld()

type Transaction = SqliteTransaction<SqliteClient>

const route = () => {
  const { parse: _, ...options } = whole()
  return options
}

const caught: unknown[] = []

@Catch()
class Everything implements ExceptionFilter {
  catch(error: HttpException, host: ArgumentsHost) {
    caught.push(error)
    host
      .switchToHttp()
      .getResponse()
      .status(error.getStatus?.() ?? 500)
      .json({ filtered: true })
  }
}

const positive: PipeTransform<{ amount: number }> = {
  transform(body) {
    if (body.amount > 0) return body
    throw new BadRequestException('no amount')
  },
}

const refusing: PipeTransform<{ amount: number }> = {
  transform(body) {
    if (body.amount > 0) return body
    throw new AnswerError(reply(422, 'no amount'), { kept: true })
  },
}

async function create(controller: Type): Promise<string> {
  class Application {}
  Module({ imports: [RepriseModule.forRoot(db)], controllers: [controller] })(Application)
  const app = await NestFactory.create(Application, { logger: false, abortOnError: false, rawBody: true })
  app.useGlobalFilters(new Everything())
  await app.listen(0, '127.0.0.1')
  caught.length = 0
  return serve({ url: await app.getUrl(), close: () => app.close() })
}

const summary = async (answer: Response) => [
  answer.status,
  await answer.text(),
  answer.headers.get('idempotent-replayed'),
]

const bad = { body: '{"amount":0}' }

describe('what a pipe throws, on Nest,', () => {
  it('goes to the exception filters and leaves the key free; what the method throws is stored', async () => {
    @Controller()
    class Charges {
      @Post('body')
      @Idempotent(route())
      async body(@Tx() tx: Transaction, @Body(positive) { amount }: { amount: number }) {
        await tx.insertOnce('charge', { id: String(amount) }, ['id'])
        return { amount }
      }

      @Post('param/:id')
      @Idempotent(route())
      param(@Param('id', ParseIntPipe) id: number) {
        return { id }
      }

      @Post('leased')
      @IdempotentLeased({ ...route(), recover: hold() })
      async leased(@Call('lease') lease: Lease, @Body(positive) { amount }: { amount: number }) {
        return { amount: await lease.effect('charge', () => amount) }
      }

      @Post('method')
      @Idempotent(route())
      method(@Body() { amount }: { amount: number }) {
        if (amount === 0) throw new BadRequestException('no amount')
        return { amount }
      }
    }
    const url = await create(Charges)
    for (const path of ['body', 'leased']) {
      for (const _ of [1, 2]) {
        expect(await summary(await post(`${url}/${path}`, bad))).toEqual([400, '{"filtered":true}', null])
      }
      for (const replayed of [null, 'true']) {
        expect(await summary(await post(`${url}/${path}`))).toEqual([201, '{"amount":7}', replayed])
      }
    }
    for (const _ of [1, 2]) expect((await post(`${url}/param/x`)).headers.get('idempotent-replayed')).toBeNull()
    expect(await summary(await post(`${url}/param/7`))).toEqual([201, '{"id":7}', null])
    expect([caught.map((error) => (error as HttpException).getStatus()), await rows()]).toEqual([Array(6).fill(400), 1])
    for (const replayed of [null, 'true']) {
      const answer = await post(`${url}/method`, bad)
      expect([answer.status, answer.headers.get('idempotent-replayed')]).toEqual([400, replayed])
    }
    expect((await post(`${url}/method`)).status).toBe(422)
  })

  it('is told from what the method throws though it is the very same error', async () => {
    const shared = new BadRequestException('no amount')
    const sharing: PipeTransform<{ amount: number }> = {
      transform(body) {
        if (body.amount === 0) throw shared
        return body
      },
    }
    @Controller()
    class Charges {
      @Post('shared')
      @Idempotent(route())
      shared(@Body(sharing) { amount }: { amount: number }) {
        throw amount === 7 ? shared : new Error('another amount')
      }

      @Post('mine')
      @Idempotent({ ...route(), answerOf: () => reply(418, 'mine') })
      mine(@Body(sharing) _body: object) {
        throw shared
      }
    }
    const url = await create(Charges)
    expect(await summary(await post(`${url}/shared`, bad))).toEqual([400, '{"filtered":true}', null])
    expect(caught).toEqual([shared])
    for (const replayed of [null, 'true']) {
      const answer = await post(`${url}/shared`)
      expect([answer.status, answer.headers.get('idempotent-replayed')]).toEqual([400, replayed])
    }
    expect(caught).toHaveLength(1)
    // Nor is an answerOf that makes an answer of everything asked about what a pipe threw.
    expect(await summary(await post(`${url}/mine`, bad))).toEqual([400, '{"filtered":true}', null])
    expect((await post(`${url}/mine`)).status).toBe(418)
  })

  it('is not stored either where it is an answer', async () => {
    @Controller()
    class Charges {
      @Post('atomic')
      @Idempotent(route())
      atomic(@Body(refusing) body: object) {
        return body
      }

      @Post('leased')
      @IdempotentLeased({ ...route(), recover: hold() })
      leased(@Body(refusing) body: object) {
        return body
      }
    }
    const url = await create(Charges)
    for (const path of ['atomic', 'leased']) {
      for (const _ of [1, 2]) expect(await summary(await post(`${url}/${path}`, bad))).toEqual([422, 'no amount', null])
      expect((await post(`${url}/${path}`)).status).toBe(201)
    }
  })
})

describe('a method on Nest', () => {
  it('keeps its name, its parameters and what decorators on both sides say of it', async () => {
    @Controller()
    class Charges {
      @Post('charges')
      @SetMetadata('above', 1)
      @Idempotent(route())
      @SetMetadata('below', 2)
      @HttpCode(202)
      create(@Body() { amount }: { amount: number }) {
        return { amount: amount + this.more() }
      }

      more(): number {
        return 1
      }
    }
    const { create: method } = Charges.prototype
    expect([method.name, method.length]).toEqual(['create', 1])
    expect([Reflect.getMetadata('above', method), Reflect.getMetadata('below', method)]).toEqual([1, 2])
    expect(new Charges().create({ amount: 1 })).toEqual({ amount: 2 })
    expect(await summary(await post(`${await create(Charges)}/charges`))).toEqual([202, '{"amount":8}', null])
  })

  it('may return what only looks like an answer: it is sent as JSON', async () => {
    const shape = { status: 404, headers: [], body: 'text' }
    @Controller()
    class Charges {
      @Post('charges')
      @Idempotent(route())
      create() {
        return shape
      }
    }
    expect(await summary(await post(`${await create(Charges)}/charges`))).toEqual([201, JSON.stringify(shape), null])
  })

  it('may return a StreamableFile, which is stored like any other body', async () => {
    @Controller()
    class Files {
      @Post('bytes')
      @Idempotent(route())
      bytes() {
        return new StreamableFile(Buffer.from('a,b'), { type: 'text/csv', disposition: 'attachment; filename="a.csv"' })
      }

      @Post('typed')
      @Header('Content-Type', 'application/pdf')
      @Header('Content-Disposition', 'inline')
      @Idempotent(route())
      typed() {
        return new StreamableFile(Readable.from(['a', ',b']), { type: 'text/csv', disposition: 'attachment' })
      }

      @Post('large')
      @Idempotent({ ...route(), largestAnswer: 10 })
      large() {
        return new StreamableFile(Readable.from([Buffer.alloc(20, 'a'), Buffer.alloc(20, 'b')]))
      }

      @Post('broken')
      @Idempotent(route())
      async broken(@Tx() tx: Transaction) {
        await tx.insertOnce('charge', { id: '1' }, ['id'])
        const broken = new Readable({
          read() {
            this.destroy(new Error('no file'))
          },
        })
        return new StreamableFile(broken)
      }
    }
    const url = await create(Files)
    const fields = ['content-type', 'content-disposition', 'content-length']
    for (const replayed of [null, 'true']) {
      const bytes = await post(`${url}/bytes`)
      expect(fields.map((name) => bytes.headers.get(name))).toEqual(['text/csv', 'attachment; filename="a.csv"', '3'])
      expect(await summary(bytes)).toEqual([201, 'a,b', replayed])
      const typed = await post(`${url}/typed`)
      expect(fields.map((name) => typed.headers.get(name))).toEqual(['application/pdf', 'inline', '3'])
      expect(await summary(typed)).toEqual([201, 'a,b', replayed])
    }
    const large = await post(`${url}/large`)
    expect([large.headers.get('content-type'), await large.text()]).toEqual([
      'application/octet-stream',
      'a'.repeat(20) + 'b'.repeat(20),
    ])
    expect((await post(`${url}/large`)).status).toBe(410)
    expect([(await post(`${url}/broken`)).status, await rows()]).toEqual([500, 0])
    expect(String(caught)).toBe('Error: no file')
  })

  it('may redirect, with @Redirect on either side and with what it returns', async () => {
    @Controller()
    class Moves {
      @Post('above')
      @Redirect('/x', 303)
      @Idempotent(route())
      above() {}

      @Post('below')
      @Idempotent(route())
      @Redirect('/x')
      below() {}

      @Post('returned')
      @Redirect('/x', 303)
      @Idempotent(route())
      async returned() {
        return { url: '/y?name=Zoë%20', statusCode: 307 }
      }

      @Post('replied')
      @Redirect('/x', 303)
      @Idempotent(route())
      replied() {
        return reply(200, 'stay')
      }

      @Post('refused')
      @Redirect('/x', 303)
      @Idempotent(route())
      refused() {
        throw new BadRequestException()
      }
    }
    const url = await create(Moves)
    const move = async (path: string) => {
      const headers = { 'idempotency-key': 'k-1' }
      const { status, headers: got } = await fetch(`${url}/${path}`, { method: 'POST', headers, redirect: 'manual' })
      return [status, got.get('location'), got.get('idempotent-replayed')]
    }
    for (const replayed of [null, 'true']) {
      expect(await move('above')).toEqual([303, '/x', replayed])
      expect(await move('below')).toEqual([302, '/x', replayed])
      expect(await move('returned')).toEqual([307, '/y?name=Zo%C3%AB%20', replayed])
      expect(await move('replied')).toEqual([200, null, replayed])
      expect(await move('refused')).toEqual([400, null, replayed])
    }
    expect(caught).toEqual([])
  })

  it('that renders a template is refused when the application starts', async () => {
    @Controller()
    class Pages {
      @Post('page')
      @Render('page')
      @Idempotent(route())
      page() {}
    }
    await expect(create(Pages)).rejects.toMatchObject({ code: 'OPERATION_INVALID' })
  })

  it.each([
    ['@Res()', () => Res()],
    ['@Next()', () => Next()],
  ])('that answers by itself, with %s, is refused when the application starts', async (option, decorator) => {
    @Controller()
    class Own {
      @Post('own')
      @Idempotent(route())
      own(@decorator() response: ExpressResponse) {
        response.status(201).json({ paid: true })
      }
    }
    await expect(create(Own)).rejects.toMatchObject({ code: 'OPERATION_INVALID', details: { option } })
  })

  it('that writes to a response it only passes through is refused before anything leaves', async () => {
    @Controller()
    class Own {
      @Post('own')
      @Idempotent(route())
      async own(@Tx() tx: Transaction, @Res({ passthrough: true }) response: ExpressResponse) {
        await tx.insertOnce('charge', { id: 'own' }, ['id'])
        response.status(201).json({ paid: true })
      }
    }
    const before = await rows()
    const answer = await post(`${await create(Own)}/own`)
    expect(answer.status).toBe(500)
    expect(await answer.text()).not.toContain('paid')
    expect(await rows()).toBe(before)
  })
})

it('an application of Nest on Fastify is refused when it starts, and told what to use', async () => {
  @Controller()
  class Charges {
    @Post('charges')
    @Idempotent(route())
    charge() {
      return { paid: true }
    }
  }
  @Module({ imports: [RepriseModule.forRoot(db)], controllers: [Charges] })
  class Application {}
  const options = { logger: false, abortOnError: false } as const
  await expect(NestFactory.create(Application, new FastifyAdapter(), options)).rejects.toMatchObject({
    code: 'OPERATION_INVALID',
    message: expect.stringContaining('reprise/http/fastify'),
  })
})
