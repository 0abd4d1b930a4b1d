import { describe, expect, it } from 'vitest'
import { chargeOf, type StoreWorld, withStoreWorld } from '../../../test/cli/store-world.js'
import { factsOf, type Native, type Sent } from '../../../test/http/route-world.js'
import { atomicRoute, reply } from '../../http/core/index.js'
import { happened } from '../../idempotency/index.js'
import { type Key, scope } from '../../identity/index.js'
import { commandHelp } from '../option-table.js'
import { inspectCommand } from './inspect-command.js'
import { age as ageOf } from './output.js'
import { howToName } from './which-record.js'

const moment = '\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z'
const id = 'sha256:[\\w-]{43}'
const age = '(just now|\\d+ (second|minute)s? ago)'

describe('a list', () => {
  it('of nothing', () =>
    withStoreWorld(async ({ run }) => {
      expect(await run(['inspect'])).toMatchObject({ out: 'no records\n', code: 0 })
      expect(await run(['inspect', '--json'])).toMatchObject({ out: '{"records":[],"more":false}\n', code: 0 })
    }))

  it('by state and by operation, a line each', () =>
    withStoreWorld(async ({ run, makeUnknown, makeFinished }) => {
      await makeUnknown('k-1')
      await makeFinished('k-2')
      const { out } = await run(['inspect', '--state', 'unknown'])
      expect(out).toMatch(new RegExp(`^${id} {2}unknown {4}charge {2}claimed ${age} {2}unclassified\\n$`))
      expect((await run(['inspect', '--operation', 'note'])).out).toMatch(
        new RegExp(`^${id} {2}succeeded {2}note {2}ended ${age}\\n$`),
      )
      expect((await run(['inspect', '--state', 'failed'])).out).toBe('no records\n')
    }))

  it('in pages, each of which says where the next one begins', () =>
    withStoreWorld(async ({ run, makeUnknown }) => {
      for (const key of ['k-1', 'k-2', 'k-3']) await makeUnknown(key)
      const first = await run(['inspect', '--by-name', '--limit', '2'])
      const after = /^there may be more: --after (\S+)\n$/m.exec(first.out)?.[1] ?? ''
      const second = await run(['inspect', '--limit', '2', '--after', after, '--json'])
      const page = JSON.parse(second.out)
      expect(page.more).toBe(false)
      expect(page.records).toHaveLength(1)
      expect(first.out).not.toContain(page.records[0].id)
    }))

  it.each(['0', '1001', '1.5'])('of %s is refused', (limit) =>
    withStoreWorld(async ({ run }) => {
      const { err, code } = await run(['inspect', '--limit', limit])
      expect(err).toBe('reprise: --limit is from 1 to 1000\nSee reprise inspect --help.\n')
      expect(code).toBe(2)
    }),
  )
})

describe('one record', () => {
  it('is shown by operation, scope and key, and by its id', () =>
    withStoreWorld(async ({ run, makeUnknown }) => {
      await makeUnknown('k-1')
      const { out, code } = await run(['inspect', ...chargeOf('k-1')])
      expect(out).toMatch(new RegExp(`^id +${id}\nformat +2\n`))
      expect(out).toMatch(/\nstate +unknown\n/)
      expect(out).toMatch(/\nbecause +unclassified\n/)
      expect(out).toMatch(new RegExp(`\nfirstClaimedAt +${moment}, ${age}\n`))
      expect(out).toMatch(/\nIt may or may not have happened: find out, then reprise settle\.\n$/)
      expect(code).toBe(0)
      const byId = await run(['inspect', '--id', /sha256:\S+/.exec(out)?.[0] ?? ''])
      const steady = (text: string) => text.replace(/^now.*$/m, '').replace(new RegExp(age, 'g'), '')
      expect(steady(byId.out)).toBe(steady(out))
    }))

  it('keeps its outcome to itself, unless it is asked for', () =>
    withStoreWorld(async ({ run, makeFinished }) => {
      await makeFinished('k-1')
      const which = ['inspect', '--operation', 'note', '--scope', 'tenant-7', '--key', 'k-1']
      for (const words of [which, [...which, '--json'], ['inspect', '--json']]) {
        const { out } = await run(words)
        expect(out).not.toContain('for the caller only')
        expect(out).toMatch(/valueLength\W+32/)
      }
      expect((await run([...which, '--values'])).out).toMatch(/\nvalue +\{"secret":"for the caller only"\}\n/)
      const { record, notes } = JSON.parse((await run([...which, '--values', '--json'])).out)
      expect(record).toMatchObject({ state: 'succeeded', value: '{"secret":"for the caller only"}' })
      expect(notes).toEqual([])
    }))

  it('that is not there ends with 3', () =>
    withStoreWorld(async ({ run }) => {
      expect(await run(['inspect', ...chargeOf('k-9')])).toMatchObject({ out: 'there is no such record\n', code: 3 })
      const { out, code } = await run(['inspect', ...chargeOf('k-9'), '--json'])
      expect(JSON.parse(out)).toMatchObject({ record: null, notes: [] })
      expect(code).toBe(3)
    }))

  it('prints no control characters of others', () =>
    withStoreWorld(async ({ run, makeUnknown, db }) => {
      await makeUnknown('k-1')
      const which = { operation: 'charge', scope: scope('tenant-7'), key: 'k-1' as Key }
      const reason = 'seen\u001b[2J\nnote of somebody else\u202e'
      await db.settle(which, happened('a\u001b[2Jb'), { reason, actor: 'p\u0007at' })
      const { out } = await run(['inspect', ...chargeOf('k-1'), '--values'])
      expect(out).toMatch(new RegExp(`^note ${moment} settled by p at: unknown -> succeeded: seen \\[2J note of`, 'm'))
      expect(out.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u)
    }))
})

describe('which record', () => {
  it.each([
    [['--key', 'k-1'], howToName],
    [['--route', 'pay', '--key', 'k-1'], howToName],
    [['--principal', 'ada'], '--principal goes with --route'],
    [['--method', 'PUT'], '--method goes with --route'],
    [['--route', 'pay', '--operation', 'pay'], '--route stands in place of --operation'],
    [['--route', 'pay', '--scope', 'ada'], '--route stands in place of --scope'],
    [['--by-name', '--scope', 'ada'], '--by-name and --after list operations, and no scope'],
    [['--id', 'k-1'], '--id is the name of a record, as inspect shows it'],
    [['--id', `sha256:${'a'.repeat(43)}`, '--key', 'k-1'], '--id stands in place of --scope, --route and --key'],
    [
      ['--operation', 'a', '--scope', 'b', '--key', 'ü'],
      'The character at position 0 is not visible ASCII. [KEY_CHARACTER]',
    ],
  ])('%j is refused', (words, message) =>
    withStoreWorld(async ({ run }) => {
      const { err, code } = await run(['inspect', ...words])
      expect(err).toBe(`reprise: ${message}\nSee reprise inspect --help.\n`)
      expect(code).toBe(2)
    }),
  )
})

describe('a request of a route', () => {
  const sent = (key: string, more: Partial<Sent> = {}): Sent => ({ key, type: 'application/json', body: '{}', ...more })

  async function withRoutes(test: (world: StoreWorld) => Promise<void>): Promise<void> {
    await withStoreWorld(async (world) => {
      const principal = ({ user }: Native) => user
      const pay = atomicRoute(world.db, { name: 'pay', principal }, async () => reply(201))
      const pair = ({ user }: Native) => ['acme', user ?? ''] as const
      const order = atomicRoute(world.db, { name: 'order', principal: pair }, async () => reply(201))
      for (const [route, request] of [
        [pay, sent('k-1')],
        [pay, sent('k-2', { method: 'PUT' })],
        [order, sent('k-3')],
      ] as const) {
        expect(await route.handle(factsOf(request), { user: 'ada' })).toMatchObject({ status: 201 })
      }
      await test(world)
    })
  }

  it.each([
    ['pay', ['--principal', 'ada', '--key', 'k-1']],
    ['pay', ['--principal', 'ada', '--key', 'k-2', '--method', 'put']],
    ['order', ['--principal', 'acme', '--principal', 'ada', '--key', 'k-3']],
  ])('of %s is found by %j', (route, words) =>
    withRoutes(async ({ run }) => {
      const { out, code } = await run(['inspect', '--route', route, ...words])
      expect([/\nstate +succeeded\n/.test(out), new RegExp(`\noperation +${route}\n`).test(out), code]).toEqual([
        true,
        true,
        0,
      ])
    }),
  )

  it('is listed by its route, and by its caller', () =>
    withRoutes(async ({ run }) => {
      const listed = async (...words: string[]) =>
        JSON.parse((await run(['inspect', '--route', ...words, '--json'])).out).records.length
      expect(await listed('pay')).toBe(2)
      expect(await listed('pay', '--principal', 'ada')).toBe(1)
      expect(await listed('pay', '--principal', 'eve')).toBe(0)
      expect(await listed('order', '--principal', 'acme', '--principal', 'ada')).toBe(1)
    }))

  it('whose scope is wrong is hinted at, without a word about whose it is', () =>
    withRoutes(async ({ run, makeUnknown }) => {
      const wrong = ['inspect', '--route', 'pay', '--principal', 'eve', '--key', 'k-1']
      const { out, code } = await run(wrong)
      expect(out).toBe(
        'there is no such record\nthe same key has a record of pay under another scope: is the scope right?\n',
      )
      expect(code).toBe(3)
      expect(JSON.parse((await run([...wrong, '--json'])).out)).toMatchObject({
        record: null,
        elsewhere: [{ operation: 'pay', records: 1 }],
      })
      // One that waits for a person has neither an end nor a time at which it is looked at.
      await makeUnknown('k-9')
      const unknown = await run(['inspect', '--operation', 'charge', '--scope', 'tenant-8', '--key', 'k-9'])
      expect(unknown.out).toContain('a record of charge under another scope')
      const nowhere = await run(['inspect', '--route', 'pay', '--principal', 'ada', '--key', 'k-8'])
      expect(nowhere.out).toBe('there is no such record\n')
    }))
})

it('lists the newest first, whatever their state', () =>
  withStoreWorld(async ({ run, db, makeUnknown, makeFinished }) => {
    for (const key of ['k-1', 'k-3']) await makeFinished(key)
    await makeUnknown('k-2')
    const names = JSON.parse((await run(['inspect', '--json'])).out).records.map(({ id }: { id: string }) => id)
    const aged =
      'update reprise_marker set claimed_at_ms = ?, completed_at_ms = iif(completed_at_ms is null, null, ?) where id = ?'
    const order = [names[2], names[0], names[1]]
    for (const [ago, id] of order.entries()) {
      const atMs = Date.now() - ago * 3_600_000 - 60_000
      await db.transact((tx) => tx.query(aged, [atMs, atMs, id]))
    }
    const { records } = JSON.parse((await run(['inspect', '--json'])).out)
    expect(records.map(({ id }: { id: string }) => id)).toEqual(order)
    const { out } = await run(['inspect'])
    expect(out.match(/(1 minute|1 hour|2 hours) ago/g)).toEqual(['1 minute ago', '1 hour ago', '2 hours ago'])
  }))

it('says ages in words', () => {
  const cases = [
    [0, 'just now'],
    [999, 'just now'],
    [1_000, '1 second ago'],
    [185_000, '3 minutes ago'],
    [7_200_000, '2 hours ago'],
    [-86_400_000, 'in 1 day'],
    [-9_000, 'in 9 seconds'],
  ] as const
  for (const [ms, words] of cases) expect(ageOf(1_000_000 - ms, 1_000_000)).toBe(words)
})

it('explains itself, and says what is read', () => {
  const help = commandHelp(inspectCommand)
  expect(help).toContain('3 there is no such record')
  for (const words of ['--route NAME', '--principal NAME', 'newest first', 'What is read:', 'may read the whole table'])
    expect(help).toContain(words)
})
