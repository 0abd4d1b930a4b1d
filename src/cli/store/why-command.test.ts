import { describe, expect, it } from 'vitest'
import { ioInMemory } from '../../../test/cli/io-in-memory.js'
import { chargeOf, type StoreWorld, withStoreWorld } from '../../../test/cli/store-world.js'
import { gate } from '../../../test/gate.js'
import { hold, leased } from '../../idempotency/index.js'
import { type Key, scope } from '../../identity/index.js'
import { consume } from '../../messaging/index.js'
import { runCommandLine } from '../index.js'
import { commandHelp } from '../option-table.js'
import { howToName } from './which-record.js'
import { whyCommand } from './why-command.js'

const identity = { scope: () => scope('tenant-7'), key: (key: string) => key as Key, window: '1h' } as const
const placeOf = ['--operation', 'place', '--scope', 'tenant-7']
const time = '\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z'

/** An operation that emits, a consumer that emits further, and one behind it that cannot handle what it gets. */
function shop({ db }: StoreWorld, isBad: () => boolean = () => false) {
  const place = db.operation('place', {
    ...identity,
    run: async (tx) => {
      await tx.emit({ id: 'm-1', type: 'order.placed', key: 'order', data: { secret: 4711 } })
      return { secret: 4711 }
    },
  })
  const receipts = consume(db, {
    name: 'receipts',
    from: db,
    handle: async (tx, { type }) => {
      if (type === 'order.placed') await tx.emit({ id: 'm-2', type: 'receipt.written', key: 'receipt', data: {} })
    },
  })
  const mails = consume(db, {
    name: 'mails',
    from: db,
    handle: (_tx, { type }) => {
      if (type === 'receipt.written' && isBad()) throw new TypeError('no address')
    },
  })
  const drain = async (): Promise<void> => {
    for (const reader of [receipts, mails, receipts, mails]) await reader.drain()
  }
  return { place, drain }
}

describe('why', () => {
  it('tells of what is done, in order, and shows nothing private', () =>
    withStoreWorld(async (world) => {
      const { place, drain } = shop(world)
      await drain()
      await place('k-1')
      await drain()
      await place('k-1') // replayed
      const { out, err, code } = await world.run(['why', '--key', 'k-1', ...placeOf])
      expect([err, code]).toEqual(['', 0])
      const told = out.split('\n').map((line) => line.replace(new RegExp(`^${time}  `), '').replace(/^- +/, ''))
      const happened = told.slice(0, told.indexOf('not known'))
      expect(happened[0]).toBe('claimed for place (atomic)')
      for (const line of [
        'succeeded; 15 characters are kept',
        expect.stringMatching(/^emitted order\.placed m-1 \(key order\), epoch \d+, number 1$/),
        expect.stringMatching(/^emitted receipt\.written m-2 \(key receipt\), epoch \d+, number 1$/),
        expect.stringMatching(/^consumer receipts.* order\.placed m-1/),
        expect.stringMatching(/^consumer mails.* receipt\.written m-2/),
      ]) {
        expect(happened).toContainEqual(line)
      }
      expect(out).toMatch(/\nnext\n {2}Nothing about the key: a repeat gets the stored outcome until [^\n]+\n$/)
      const json = await world.run(['why', '--key', 'k-1', ...placeOf, '--json'])
      expect(JSON.parse(json.out)).toMatchObject({
        record: { state: 'succeeded', operation: 'place' },
        messages: [
          {
            id: 'm-1',
            readers: [
              { reader: 'mails', state: 'done' },
              { reader: 'receipts', state: 'done' },
            ],
          },
          { id: 'm-2', letters: [] },
        ],
        next: [expect.stringContaining('stored outcome')],
      })
      for (const text of [out, json.out]) expect(text).not.toContain('4711')
    }))

  it('follows a dead letter downstream, and says how to decide it', () =>
    withStoreWorld(async (world) => {
      const { place, drain } = shop(world, () => true)
      await drain()
      await place('k-1')
      await drain()
      const { out } = await world.run(['why', '--key', 'k-1', ...placeOf])
      expect(out).toMatch(/dead letter of mails: \w+: /)
      const redrive = /reprise (redrive --reader mails --id m-2 --source \S+) --reason TEXT/.exec(out)?.[1] ?? ''
      // What is advised works as it stands.
      expect(await world.run([...redrive.split(' '), '--reason', 'there is one now'])).toMatchObject({
        code: 0,
        err: '',
      })
      expect((await world.run(['why', '--key', 'k-1', ...placeOf])).out).toMatch(
        /the letter is redriving: .*there is one now/,
      )
    }))

  it('says of what waits who has it before it', () =>
    withStoreWorld(async (world) => {
      const { place, drain } = shop(world)
      await drain()
      await place('k-1')
      const { out } = await world.run(['why', '--key', 'k-1', ...placeOf])
      expect(out).toContain('order.placed m-1 (key order) is before consumer receipts: does it run?')
    }))

  it('tells of an unknown outcome, and of how it was settled', () =>
    withStoreWorld(async ({ run, makeUnknown }) => {
      await makeUnknown('k-1')
      const { out, code } = await run(['why', ...chargeOf('k-1')])
      expect(out).toMatch(/its outcome became unknown, because: unclassified; no sweep has looked yet/)
      expect(out).toMatch(/What the effect did outside of the store is known there alone/)
      expect(code).toBe(0)
      const settle = /reprise (settle --id \S+ --as succeeded)/.exec(out)?.[1] ?? ''
      expect(await run([...settle.split(' '), '--reason', 'listed', '--actor', 'ada'])).toMatchObject({ code: 0 })
      const after = await run(['why', ...chargeOf('k-1')])
      expect(after.out).toMatch(/settled by ada: unknown -> succeeded: listed/)
    }))

  it('tells of what is in flight', () =>
    withStoreWorld(async ({ run, db }) => {
      const [reached, go] = [gate(), gate()]
      const slow = leased('slow', {
        ...identity,
        store: db,
        lease: '1h',
        recover: hold(),
        run: async () => {
          reached.open()
          await go.opened
          return 'done'
        },
      })
      const called = slow('k-1')
      await reached.opened
      const { out } = await run(['why', '--key', 'k-1', '--operation', 'slow', '--scope', 'tenant-7'])
      go.open()
      await called
      expect(out).toMatch(/next\n {2}It is in flight: its owner has until \S+, in \d+ (minutes|hour)/)
    }))

  it('says where a key that is not there may be: under another scope', () =>
    withStoreWorld(async ({ run, makeFinished }) => {
      await makeFinished('k-1')
      const absent = await run(['why', '--key', 'k-1', '--operation', 'note', '--scope', 'tenant-8'])
      expect(absent.code).toBe(3)
      // What matters comes first.
      expect(absent.out).toMatch(
        /^the same key has a record of note under another scope: is the scope right\?\nnext\n {2}There is no record: the key was never used under this scope, was released, or was forgotten.*\nnot known\n/,
      )
      const json = JSON.parse(
        (await run(['why', '--key', 'k-1', '--route', 'pay', '--principal', 'ada', '--json'])).out,
      )
      expect(json).toMatchObject({ record: null, messages: [], elsewhere: [{ operation: 'note', records: 1 }] })
      expect((await run(['why', '--key', 'k-9', ...placeOf])).out).not.toContain('another scope')
    }))

  it('finds a key alone among the newest records, unless there are several of it, or none', () =>
    withStoreWorld(async (world) => {
      const { place } = shop(world)
      await place('k-1')
      const idOf = async (...also: string[]): Promise<unknown> =>
        JSON.parse((await world.run(['why', '--key', 'k-1', '--json', ...also])).out).id
      const id = await idOf(...placeOf)
      for (const also of [[], ['--operation', 'place'], ['--scope', 'tenant-7']]) expect(await idOf(...also)).toBe(id)
      expect(await world.run(['why', '--key', 'k-9'])).toMatchObject({
        code: 2,
        err: expect.stringContaining('none of the newest 1000 records has this key: a record is named by'),
      })
      await world.makeFinished('k-1')
      expect(await world.run(['why', '--key', 'k-1'])).toMatchObject({
        code: 2,
        err: expect.stringMatching(/2 records have this key \((note, place|place, note)\): a record is named by/),
      })
      expect(await world.run(['why', '--key', 'k-1', '--operation', 'place'])).toMatchObject({ code: 0, err: '' })
    }))

  it('has to know which key, and explains itself', () =>
    withStoreWorld(async ({ run, url }) => {
      const io = ioInMemory()
      await runCommandLine(['why', 'k-1', '--url', url, ...placeOf], io)
      expect([io.code, io.err]).toEqual([3, ''])
      expect(await run(['why'])).toMatchObject({ code: 2, err: `reprise: ${howToName}\nSee reprise why --help.\n` })
      expect(commandHelp(whyCommand)).toContain('reprise why KEY --url URL')
    }))
})
