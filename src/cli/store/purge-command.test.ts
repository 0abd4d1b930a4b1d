import { describe, expect, it } from 'vitest'
import { ioInMemory } from '../../../test/cli/io-in-memory.js'
import { chargeOf, type StoreWorld, withStoreWorld } from '../../../test/cli/store-world.js'
import { type Key, mintKey, scope } from '../../identity/index.js'
import { consume } from '../../messaging/index.js'
import { commandHelp } from '../option-table.js'
import { purgeCommand } from './purge-command.js'

const noMessages = { messages: 0, processed: 0, heads: 0, letters: 0 }
const counts = { finished: 0, unknown: 0, audit: 0, markers: 0, unconfirmed: 0, interrupted: false }
const nothing = { ...counts, messages: noMessages }
const ofMessages = 'of messages: 0 sent, 0 processed, 0 keys without messages, 0 closed dead letters\n'

async function makeForgotten({ db, makeFinished }: StoreWorld, count: number): Promise<void> {
  const keys = Array.from({ length: count }, (_, index) => `old-${index}` as Key)
  for (const key of keys) await makeFinished(key, true)
  const which = { operation: 'note', scope: scope('tenant-7'), key: keys.at(-1) as Key }
  await expect.poll(() => db.lookup(which)).toMatchObject({ forgotten: true })
}

describe('purge', () => {
  it('forgets what is past its window, and nothing else', () =>
    withStoreWorld(async (world) => {
      const { run, makeFinished, makeUnknown } = world
      await makeForgotten(world, 3)
      await makeFinished('young')
      await makeUnknown('open')
      expect(await run(['purge'])).toMatchObject({
        out: `forgotten: 3 finished, 0 unknown, 0 keys of transactions, 0 notes\n${ofMessages}`,
        err: '',
        code: 0,
      })
      const left = JSON.parse((await run(['inspect', '--json'])).out).records
      expect(left.map(({ state }: { state: string }) => state).sort()).toEqual(['succeeded', 'unknown'])
    }))

  it('answers as JSON', () =>
    withStoreWorld(async (world) => {
      await makeForgotten(world, 1)
      const { out, err } = await world.run(['purge', '--json'], ioInMemory({ columns: 80 }))
      expect(JSON.parse(out)).toEqual({ ...nothing, finished: 1 })
      expect(err).toBe('')
    }))

  it('shows how far it is, on a terminal', () =>
    withStoreWorld(async (world) => {
      await makeForgotten(world, 3)
      const { out, err } = await world.run(['purge', '--batch', '1', '--pause', '1ms'], ioInMemory({ columns: 80 }))
      expect(err).toBe(
        '\r1 finished forgotten\r2 finished forgotten\r3 finished forgotten\r3 finished forgotten\r\u001b[K',
      )
      expect(out).toBe(`forgotten: 3 finished, 0 unknown, 0 keys of transactions, 0 notes\n${ofMessages}`)
    }))

  it.each([false, true])('ends after the batch at hand when it is asked to, and says so (as JSON: %s)', (json) =>
    withStoreWorld(async (world) => {
      await makeForgotten(world, 3)
      const io = ioInMemory()
      const asked = new AbortController()
      io.untilEnded = () => asked.signal
      const ended = world.run(['purge', '--batch', '1', '--pause', '1h', ...(json ? ['--json'] : [])], io)
      const left = async (): Promise<number> => JSON.parse((await world.run(['inspect', '--json'])).out).records.length
      await expect.poll(left).toBe(2)
      asked.abort()
      await ended
      if (json) expect(JSON.parse(io.out)).toEqual({ ...nothing, finished: 1, interrupted: true })
      else {
        const said = 'forgotten: 1 finished, 0 unknown, 0 keys of transactions, 0 notes\n'
        expect(io.out).toBe(`${said}${ofMessages}interrupted: there may be more to forget\n`)
      }
      expect(io.code).toBe(1)
    }),
  )

  it('drops an unknown outcome only when it is told to, and leaves a note', () =>
    withStoreWorld(async ({ run, makeUnknown }) => {
      await makeUnknown('k-1')
      expect((await run(['purge', '--json'])).err).toBe('')
      const kept = await run(['purge', '--json', '--unknown-after', '1h'])
      expect(kept.err).toMatch(/^warning: .* carried out anew\n$/)
      expect(JSON.parse(kept.out)).toEqual(nothing)
      expect(JSON.parse((await run(['purge', '--json', '--unknown-after', '0s'])).out)).toEqual({
        ...nothing,
        unknown: 1,
      })
      const { out, code } = await run(['inspect', ...chargeOf('k-1')])
      expect(out).toMatch(/^there is no such record\nnote \S+ dropped by purge: unknown -> absent: /)
      expect(code).toBe(3)
    }))

  it('forgets keys of transactions and notes by age, when it is told to', () =>
    withStoreWorld(async ({ db, run, makeUnknown }) => {
      await db.transact(() => 1, { content: 'none', key: { scope: scope('a'), key: mintKey() } })
      await makeUnknown('k-1')
      await run(['settle', ...chargeOf('k-1'), '--as', 'released', '--reason', 'seen'])
      const { err, code } = await run(['purge', '--json', '--markers-after', '2s'])
      expect([err, code]).toEqual([expect.stringContaining('[WINDOW_SHORTER_THAN_DEADLINE]'), 2])
      await db.transact((tx) => tx.query('update reprise_marker set claimed_at_ms = claimed_at_ms - 60000'))
      const { out } = await run(['purge', '--json', '--markers-after', '20s', '--audit-after', '0s'])
      expect(JSON.parse(out)).toEqual({ ...nothing, markers: 1, audit: 1 })
    }))

  it('forgets messages that nobody has to read any more, by age', () =>
    withStoreWorld(async ({ db, run }) => {
      const receipts = consume(db, { name: 'receipts', from: db, handle: () => undefined })
      await receipts.drain()
      await db.transact((tx) => tx.emit({ type: 'order.placed', subject: 'order/1', data: 1 }))
      await receipts.drain()
      const young = JSON.parse((await run(['purge', '--json'])).out)
      expect(young).toEqual(nothing)
      await db.transact((tx) => tx.query('update reprise_message set at_ms = at_ms - 7200000'))
      expect((await run(['purge', '--sent-after', 'never', '--json'])).out).toBe(`${JSON.stringify(nothing)}\n`)
      const old = JSON.parse((await run(['purge', '--sent-after', '1h', '--json'])).out)
      expect(old).toEqual({ ...nothing, messages: { ...noMessages, messages: 1 } })
    }))

  it('purges the records of a store that has no tables of messages yet', () =>
    withStoreWorld(async ({ db, run }) => {
      await db.transact((tx) => tx.query('drop table reprise_message'))
      const { out, code } = await run(['purge', '--json'])
      expect([JSON.parse(out).messages, code]).toEqual([null, 0])
    }))

  it.each([
    [['--batch', '0'], 'The option batch must be a whole number from 1 to 10000. [ARGUMENT_INVALID]'],
    [['--pause', 'soon'], /^reprise: The option pause is not valid. A duration must .* \[DURATION_INVALID\]\n/],
    [
      ['--unknown-after', '-1h'],
      /^reprise: The option unknown-after is not valid. A duration must .* \[DURATION_INVALID\]\n/,
    ],
  ])('refuses %j', (words, message) =>
    withStoreWorld(async ({ run }) => {
      const { out, err, code } = await run(['purge', ...words])
      expect(err).toMatch(message)
      expect({ out, code }).toEqual({ out: '', code: 2 })
    }),
  )
})

it('explains itself', () => {
  expect(commandHelp(purgeCommand)).toContain('What is claimed or unknown stays.')
})
