import { describe, expect, it } from 'vitest'
import { ioInMemory } from '../../../test/cli/io-in-memory.js'
import { chargeOf, withStoreWorld } from '../../../test/cli/store-world.js'
import { hold, leased } from '../../idempotency/index.js'
import { type Key, scope } from '../../identity/index.js'
import { commandHelp } from '../option-table.js'
import { settleCommand } from './settle-command.js'

const decided = ['--reason', 'the gateway lists it']

describe('settle', () => {
  it.each([
    [['--as', 'succeeded', '--value', '{"receipt":"r-81"}'], 'settled: succeeded\n', 'unknown -> succeeded'],
    [['--as', 'failed', '--code', 'declined', '--data', '{"by":"bank"}'], 'settled: failed\n', 'unknown -> failed'],
    [['--as', 'released'], 'settled: the key is free again\n', 'unknown -> absent'],
  ])('%j, with a note that inspect shows', (words, said, change) =>
    withStoreWorld(async ({ run, makeUnknown }) => {
      await makeUnknown('k-1')
      const settled = await run(['settle', ...chargeOf('k-1'), ...words, ...decided, '--actor', 'pat'])
      expect(settled).toMatchObject({ out: said, err: '', code: 0 })
      const { out } = await run(['inspect', ...chargeOf('k-1')])
      expect(out).toMatch(new RegExp(`^note \\S+ settled by pat: ${change}: the gateway lists it\n`, 'm'))
      const { notes } = JSON.parse((await run(['inspect', ...chargeOf('k-1'), '--json'])).out)
      expect(notes).toMatchObject([{ action: 'settled', actor: 'pat', reason: 'the gateway lists it' }])
    }),
  )

  it('is what the next call of the operation gets', () =>
    withStoreWorld(async ({ db, run }) => {
      let runs = 0
      const refund = leased('refund', {
        store: db,
        scope: () => scope('tenant-7', 'refunds'),
        key: (key: Key) => key,
        window: '1h',
        lease: '1s',
        failures: ['declined'],
        recover: hold(),
        run: (lease): Promise<{ receipt: string }> => {
          runs += 1
          return lease.effect('refund', () => Promise.reject(new Error('the answer got lost')))
        },
      })
      for (const key of ['k-1', 'k-2'] as Key[]) await refund(key).catch(() => undefined)
      const which = (key: string) => [
        '--operation',
        'refund',
        '--scope',
        'tenant-7',
        '--scope',
        'refunds',
        '--key',
        key,
      ]
      await run(['settle', ...which('k-1'), '--as', 'succeeded', '--value', '{"receipt":"r-81"}', ...decided])
      await run(['settle', ...which('k-2'), '--as', 'failed', '--code', 'declined', ...decided])
      expect(await refund.outcome('k-1' as Key)).toMatchObject({ value: { receipt: 'r-81' }, replayed: true })
      expect(await refund.outcome('k-2' as Key)).toMatchObject({ failure: { code: 'declined' }, replayed: true })
      expect(runs).toBe(2)
    }))

  it('by its id, answered as JSON, remembered for the window, and named by the environment', () =>
    withStoreWorld(async ({ run, makeUnknown }) => {
      await makeUnknown('k-1')
      const { records } = JSON.parse((await run(['inspect', '--json'])).out)
      const { id } = records[0]
      const io = ioInMemory()
      io.environment = (name) => ({ USER: 'sam' })[name]
      await run(['settle', '--id', id, '--as', 'succeeded', '--window', '1h', '--json', ...decided], io)
      expect(io.out).toBe(`{"id":"${id}","state":"succeeded"}\n`)
      const shown = JSON.parse((await run(['inspect', '--id', id, '--json'])).out)
      expect(shown.record.expiresAtMs - shown.record.completedAtMs).toBe(3_600_000)
      expect(shown.notes).toMatchObject([{ actor: 'sam' }])
    }))

  it('ends with 3 where there is nothing to settle', () =>
    withStoreWorld(async ({ run, makeFinished }) => {
      const absent = await run(['settle', ...chargeOf('k-9'), '--as', 'released', ...decided])
      expect(absent.err).toBe('reprise: nothing was settled: the record is not there [SETTLE_REFUSED]\n')
      expect(absent.code).toBe(3)
      await makeFinished('k-1')
      const which = ['--operation', 'note', '--scope', 'tenant-7', '--key', 'k-1']
      const finished = await run(['settle', ...which, '--as', 'released', ...decided])
      expect(finished.err).toBe('reprise: nothing was settled: the record is finished already [SETTLE_REFUSED]\n')
      expect(finished.code).toBe(3)
    }))

  it.each([
    [['--as', 'released'], '--reason is missing: say how you know'],
    [['--as', 'released', '--reason', ' '], 'A settlement needs a reason of 1 to 1,000 characters. [ARGUMENT_INVALID]'],
    [decided, '--as is missing: succeeded, failed or released'],
    [['--as', 'succeeded', '--value', '{receipt}', ...decided], '--value is not JSON'],
    [['--as', 'failed', '--code', 'declined', '--data', 'bank', ...decided], '--data is not JSON'],
    [['--as', 'failed', ...decided], '--as failed needs --code'],
    [['--as', 'released', '--value', '1', ...decided], '--value goes with --as succeeded'],
    [['--as', 'succeeded', '--code', 'a', ...decided], '--code and --data go with --as failed'],
    [['--as', 'gone', ...decided], '--as is one of succeeded, failed, released; not gone'],
  ])('refuses %j, and the record stays as it is', (words, message) =>
    withStoreWorld(async ({ run, makeUnknown }) => {
      await makeUnknown('k-1')
      const { out, err, code } = await run(['settle', ...chargeOf('k-1'), ...words])
      expect(err).toBe(`reprise: ${message}\nSee reprise settle --help.\n`)
      expect({ out, code }).toEqual({ out: '', code: 2 })
      expect((await run(['inspect', '--state', 'unknown'])).out).toContain('charge')
    }),
  )

  it('refuses to guess which record is meant', () =>
    withStoreWorld(async ({ run }) => {
      const { err, code } = await run(['settle', '--as', 'released', ...decided])
      expect(err).toContain('which record? --operation, --scope and --key, or --id')
      expect(code).toBe(2)
    }))
})

it('warns of what it can do', () => {
  expect(commandHelp(settleCommand)).toContain('it happens twice')
})
