import 'reflect-metadata'
import {
  type ArgumentsHost,
  Body,
  type CanActivate,
  Catch,
  ConflictException,
  Controller,
  type ExceptionFilter,
  ForbiddenException,
  HttpCode,
  Module,
  type NestApplicationOptions,
  Param,
  Post,
  Res,
  UseGuards,
} from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { of } from 'rxjs'
import { describe, expect, it } from 'vitest'
import {
  Call,
  Idempotent,
  IdempotentLeased,
  type NestCall,
  RepriseModule,
  reply,
  Tx,
} from '../../../src/http/nest/index.js'
import { hold, type Lease } from '../../../src/idempotency/index.js'
import { isRepriseError } from '../../../src/kernel/index.js'
import type { SqliteClient, SqliteTransaction } from '../../../src/stores/sqlite/index.js'
import { openWorld } from './world.js'

const { db, post, route, rows, serve } = await openWorld()

type Transaction = SqliteTransaction<SqliteClient>

class Guarded implements CanActivate {
  static isOpen = true
  canActivate(): boolean {
    if (!Guarded.isOpen) throw new ForbiddenException()
    return true
  }
}

const seen: unknown[] = []

@Catch()
class Everything implements ExceptionFilter {
  catch(error: Error & { getStatus?(): number }, host: ArgumentsHost) {
    seen.push(error)
    host
      .switchToHttp()
      .getResponse()
      .status(error.getStatus?.() ?? 503)
      .json({ caught: true })
  }
}

// A new one each time, with routes of its own: one database holds all their operations.
function application(first: object = {}) {
  @Controller('charges')
  @UseGuards(Guarded)
  class Charges {
    @Post()
    @Idempotent({ ...route(), ...first })
    async create(@Tx() tx: Transaction, @Body() body: { amount: number } | undefined, @Call('key') key: string) {
      await tx.insertOnce('charge', { id: key }, ['id'])
      return { amount: body?.amount ?? 'unread', key }
    }

    @Post('accepted/:id')
    @HttpCode(202)
    @Idempotent(route())
    accepted(@Param('id') id: string, @Call() call: NestCall<{ amount: number }>) {
      return of({ id, amount: call.input.amount })
    }

    @Post('refused')
    @Idempotent(route())
    async refused(
      @Tx() tx: Transaction,
      @Res({ passthrough: true }) response: { setHeader(name: string, value: string): void },
    ) {
      response.setHeader('x-own', 'yes')
      await tx.insertOnce('charge', { id: '1' }, ['id'])
      throw new ConflictException('sold out')
    }

    @Post('broken')
    @Idempotent(route())
    async broken(@Tx() tx: Transaction) {
      await tx.insertOnce('charge', { id: '1' }, ['id'])
      throw new Error('no ledger')
    }

    @Post('leased')
    @IdempotentLeased({ ...route(), recover: hold() })
    async leased(@Call('lease') lease: Lease) {
      const id = await lease.effect('charge', () => 7)
      return reply(200, { id }, { 'x-id': String(id) })
    }
  }

  @Module({ imports: [RepriseModule.forRoot(db)], controllers: [Charges] })
  class Application {}
  return Application
}

const create = async (options: NestApplicationOptions, first = {}): Promise<string> => {
  const app = await NestFactory.create(application(first), { logger: false, abortOnError: false, ...options })
  app.useGlobalFilters(new Everything())
  await app.listen(0, '127.0.0.1')
  return serve({ url: await app.getUrl(), close: () => app.close() })
}

describe('on Nest', () => {
  it('a method gets its transaction, and what it returns is stored with its status', async () => {
    const url = await create({ rawBody: true })
    for (const replayed of [null, 'true']) {
      const created = await post(`${url}/charges`, { key: 'a' })
      expect([created.status, await created.json()]).toEqual([201, { amount: 7, key: 'a' }])
      const accepted = await post(`${url}/charges/accepted/9`, { key: 'a' })
      expect([accepted.status, await accepted.json()]).toEqual([202, { id: '9', amount: 7 }])
      const leased = await post(`${url}/charges/leased`, { key: 'a' })
      expect([leased.status, leased.headers.get('content-type'), await leased.json()]).toEqual([
        200,
        'application/json; charset=utf-8',
        { id: 7 },
      ])
      const seen = [created, accepted, leased].map(({ headers }) => headers.get('idempotent-replayed'))
      expect(seen).toEqual([replayed, replayed, replayed])
    }
    expect(await rows()).toBe(1)
  })

  it('an HttpException is an answer: rolled back, stored and replayed', async () => {
    const url = await create({ bodyParser: false })
    const shown = { statusCode: 409, message: 'sold out', error: 'Conflict' }
    for (const replayed of [null, 'true']) {
      const answer = await post(`${url}/charges/refused`)
      expect([answer.status, await answer.json()]).toEqual([409, shown])
      expect(answer.headers.get('idempotent-replayed')).toBe(replayed)
    }
    expect(await rows()).toBe(0)
  })

  it('any other error goes to the exception filters, and is rolled back', async () => {
    const url = await create({ bodyParser: false })
    seen.length = 0
    const answer = await post(`${url}/charges/broken`)
    expect([answer.status, await answer.json(), String(seen[0])]).toEqual([503, { caught: true }, 'Error: no ledger'])
    expect(await rows()).toBe(0)
  })

  it('guards run before, on replays too', async () => {
    const url = await create({ bodyParser: false })
    expect((await post(`${url}/charges`)).status).toBe(201)
    Guarded.isOpen = false
    expect((await post(`${url}/charges`)).status).toBe(403)
    Guarded.isOpen = true
  })

  it('a parser that keeps no bytes is told so to the exception filters', async () => {
    const url = await create({})
    seen.length = 0
    expect((await post(`${url}/charges`)).status).toBe(503)
    expect(isRepriseError(seen[0], 'BODY_CONSUMED')).toBe(true)
    expect(String(seen[0])).toContain('rawBody: true')
  })

  it('wrong options are refused when the application starts', async () => {
    await expect(create({}, { window: '1s', retryHorizon: '1h' })).rejects.toMatchObject({
      code: 'WINDOW_SHORTER_THAN_HORIZON',
    })
  })
})
