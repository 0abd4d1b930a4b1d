// The subject on Nest with its platform for Express: a guard, and one controller whose methods are made of the table of
// routes.

import 'reflect-metadata'
import type { Server } from 'node:http'
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Module,
  Post,
  Put,
  Req,
  UnauthorizedException,
  UseGuards,
} from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import type { Request } from 'express'
import { Call, Idempotent, IdempotentLeased, RepriseModule, WorkStatus } from '../../../../src/http/nest/index.js'
import { statusPath } from '../leased-routes.js'
import { listening } from '../listening.js'
import { type Serve, type Subject, userOf } from '../mounted.js'

const principal = (request: Request) => userOf(request.headers.authorization)

class Authenticated implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    if (principal(context.switchToHttp().getRequest<Request>()) === undefined) throw new UnauthorizedException()
    return true
  }
}

/** Serves it. */
export const serve: Serve = async (subject) => {
  class SubjectModule {}
  Module({ imports: [RepriseModule.forRoot(subject.db)], controllers: [controllerOf(subject)] })(SubjectModule)
  // A route that refuses its options ends the start with an error that says so, and not the process without a word.
  const app = await NestFactory.create(SubjectModule, { logger: false, bodyParser: false, abortOnError: false })
  await app.init()
  const { url, close } = await listening(app.getHttpServer() as Server)
  return { url, close: () => close().then(() => app.close()) }
}

type Routed = (prototype: object, name: string, descriptor: PropertyDescriptor) => void

function controllerOf({ atomic, leased, effects }: Subject) {
  class SubjectController {}
  // As the syntax of decorators would: those of parameters first, then those of the method from the last to the first.
  const add = (
    name: string,
    method: (told: never) => unknown,
    parameter: ParameterDecorator,
    ...decorators: Routed[]
  ) => {
    const { prototype } = SubjectController
    Object.defineProperty(prototype, name, { value: method, configurable: true, writable: true })
    parameter(prototype, name, 0)
    const descriptor = Object.getOwnPropertyDescriptor(prototype, name) as PropertyDescriptor
    for (const decorate of decorators) decorate(prototype, name, descriptor)
  }
  add(
    'effects',
    async (request: Request) => ({ effects: await effects(principal(request) ?? '') }),
    Req(),
    Get('effects'),
  )
  for (const { method, path, options, handle } of atomic) {
    const route = Idempotent({ ...options, principal })
    add(options.name, (told: never) => handle(told), Call(), route, method === 'POST' ? Post(path) : Put(path))
  }
  for (const { path, options, handle } of leased) {
    add(options.name, (told: never) => handle(told), Call(), IdempotentLeased({ ...options, principal }), Post(path))
    add(`status-${options.name}`, () => undefined, Call(), WorkStatus(options.name), Get(statusPath(path)))
  }
  UseGuards(Authenticated)(SubjectController)
  Controller()(SubjectController)
  return SubjectController
}
