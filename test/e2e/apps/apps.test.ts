// Apps as a new user would write them, each in three forms: as it was, made safe by hand, and made safe with Reprise.
// The same request is sent twice, at once and after its process was killed, and what it made is counted: two in the app
// as it was, one in the others. Printed: how many lines each form takes.

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { gate } from '../../gate.js'
import { type App, endPrograms, type Program, startApp, startProgram, stopApp } from './app-process.js'
import { type Bank, type FirstAnswer, openBank } from './bank.js'
import { appLinesTable, apps, changedLines } from './changed-lines.js'
import { prismaConformance, prismaErrors } from './prisma-cases.js'
import { forms, makeProject, type Project } from './project.js'
import { type FileShop, inPostgres, inSqlite, type Shop } from './shops.js'

/** What each app is made of. */
const packages: Readonly<Record<keyof typeof apps, readonly string[]>> = {
  express: ['express', '@types/express', 'drizzle-orm', 'pg', '@types/pg'],
  fastify: ['fastify', 'libsql'],
  nest: [
    '@nestjs/common',
    '@nestjs/core',
    '@nestjs/platform-express',
    '@types/express',
    'reflect-metadata',
    'rxjs',
    'prisma',
    '@prisma/client',
    '@prisma/adapter-pg',
    'pg',
  ],
  script: ['libsql'],
}

// The one that README shows, and with REPRISE_LONG, which `npm run test:matrix -- apps` sets, all of them.
const isLong = process.env['REPRISE_LONG'] !== undefined
const chosen = (Object.keys(apps) as (keyof typeof apps)[]).filter((app) => isLong || app === 'express')

/** How many there are after a request and its repeat. */
const made = { 'as-it-was': 2, 'by-hand': 1, 'with-reprise': 1 } as const

let project: Project
beforeAll(() => {
  project = makeProject(chosen, [...new Set(chosen.flatMap((app) => packages[app]))])
})
afterAll(() => {
  endPrograms()
  project?.remove()
})

function order(app: App, item: string, key: string, user = 'ann'): Promise<Response> {
  const headers = {
    authorization: `Bearer token-of-${user}`,
    'content-type': 'application/json',
    'idempotency-key': key,
  }
  return fetch(`${app.url}/orders`, { method: 'POST', headers, body: JSON.stringify({ item, quantity: 2 }) })
}

const servers = [
  ['express', inPostgres],
  ['fastify', inSqlite],
  ['nest', inPostgres],
] as const

describe.each(servers.filter(([name]) => chosen.includes(name)))('%s', (name, open) => {
  describe.each(forms)('%s', (form) => {
    let shop: Shop
    let app: App
    const start = (env = {}): Promise<App> => startApp(project.folderOf(name, form), { ...shop.env, ...env })
    beforeAll(async () => {
      shop = await open(project, name, form)
      app = await start()
    })
    afterAll(async () => {
      await stopApp(app)
      await shop?.remove()
    })

    it('the same request twice', async () => {
      const key = randomUUID()
      const [first, again] = [await order(app, 'twice', key), await order(app, 'twice', key)]
      expect([first.status, again.status], app.said()).toEqual([201, 201])
      expect(await shop.orders('twice')).toBe(made[form])
      const answers = [first, again].map(async (one) => [one.headers.get('location'), await one.json()])
      if (form !== 'as-it-was') expect(await answers[1]).toEqual(await answers[0])
    })

    it('the same request to two processes at once', async () => {
      const key = randomUUID()
      const other = await start()
      const before = app.count('arrived')
      const release = await shop.hold()
      const both = Promise.all([order(app, 'at once', key), order(other, 'at once', key)])
      await expect.poll(() => [app.count('arrived'), other.count('arrived')]).toEqual([before + 1, 1])
      // Both are there, and neither can have written anything.
      await release()
      const statuses = (await both).map(({ status }) => status)
      const told = app.said() + other.said()
      if (form === 'with-reprise') {
        // One is at work, and the other is told to come back, or waited for it. On SQLite a wait may also be given up.
        for (const status of statuses) expect([201, 409, 503], told).toContain(status)
        expect((await order(app, 'at once', key)).status).toBe(201)
      } else expect(statuses, told).toEqual([201, 201])
      expect(await shop.orders('at once')).toBe(made[form])
      await stopApp(other)
    })

    it('the same request after its process was killed, with the order made and the answer not sent', async () => {
      const key = randomUUID()
      const dying = await start({ APP_DIES: 'before its answer' })
      await expect(order(dying, 'killed', key)).rejects.toThrow('fetch failed')
      expect([await dying.ended(), await shop.orders('killed')]).toEqual(['SIGKILL', 1])
      expect((await order(app, 'killed', key)).status).toBe(201)
      expect(await shop.orders('killed')).toBe(made[form])
    })

    it('one key of two users is two orders, and a key with another order is refused', async () => {
      const key = randomUUID()
      expect((await order(app, 'shared', key)).status).toBe(201)
      expect((await order(app, 'shared', key, 'bob')).status).toBe(201)
      expect(await shop.orders('shared')).toBe(2)
      expect((await order(app, 'another', key)).status).toBe(form === 'as-it-was' ? 201 : 422)
      expect(await shop.orders('another')).toBe(form === 'as-it-was' ? 1 : 0)
    })
  })
})

describe.each(chosen.includes('script') ? forms : [])('script %s', (form) => {
  let shop: FileShop
  let bank: Bank | undefined
  beforeAll(async () => {
    shop = await inSqlite(project, 'script', form)
  })
  afterAll(async () => {
    await bank?.close()
    await shop?.remove()
  })

  async function open(firstAnswer: FirstAnswer): Promise<() => Program> {
    await bank?.close()
    const opened = await openBank(firstAnswer)
    bank = opened
    shop.run("insert into payouts (account, amount) values ('ann', 7)")
    const env = { ...shop.env, BANK_URL: opened.url }
    return () => startProgram(project.folderOf('script', form), 'payouts.js', env)
  }

  it('an answer that gets lost', async () => {
    const start = await open((answer) => answer.lose())
    const program = start()
    expect(await program.ended(), program.said()).toBe(0)
    expect([bank?.requests(), bank?.transfers()]).toEqual([2, made[form]])
  })

  it('two processes at once', async () => {
    const answer = gate()
    const start = await open(({ send }) => answer.opened.then(send))
    const programs = [start(), start()]
    // Both know of the payout, and the bank has answered neither.
    for (const program of programs) await program.says(/^1 due$/m)
    answer.open()
    for (const program of programs) expect(await program.ended(), program.said()).toBe(0)
    expect(bank?.transfers()).toBe(made[form])
  })

  it('a process that was killed, with the transfer made and its receipt unknown', async () => {
    const paid = gate()
    const start = await open(() => paid.open())
    const dying = start()
    await paid.opened
    dying.signal('SIGKILL')
    expect([await dying.ended(), bank?.transfers()]).toEqual(['SIGKILL', 1])
    const program = start()
    expect(await program.ended(), program.said()).toBe(0)
    expect([program.count('1 due'), bank?.transfers()]).toEqual([1, made[form]])
  })
})

if (chosen.includes('nest')) {
  const folder = (): string => project.folderOf('nest', 'with-reprise')
  describe('Prisma under the conformance suite', () => prismaConformance(folder))
  describe('errors of Prisma', () => prismaErrors(folder, () => inPostgres(project, 'nest', 'with-reprise')))
}

it('lines that make each app safe', () => {
  const [[, ...heads], rows] = appLinesTable()
  const cells = rows.map(([app = '', ...counts]) => [
    app,
    Object.fromEntries(counts.map((text, at) => [heads[at], text])),
  ])
  console.table(Object.fromEntries(cells))
  // The pool's export, which becomes two lines, and the route's mount.
  expect(changedLines('express', 'with-reprise')).toEqual({ changed: 2, added: 1, imports: 3 })
})
