import { describe, expect, it, vi } from 'vitest'
import { ioInMemory, type Seen } from '../../../test/cli/io-in-memory.js'
import { withStoreWorld } from '../../../test/cli/store-world.js'
import {
  didNotHappen,
  type Found,
  happened,
  leased,
  type RecordStore,
  resolve,
  stillUnknown,
} from '../../idempotency/index.js'
import { type Key, scope } from '../../identity/index.js'
import { commandHelp } from '../option-table.js'
import { runCommandLine } from '../reprise.js'
import { sweepCommand } from './sweep-command.js'

const chargeIn = (store: RecordStore, ask: () => Found<string, never>) =>
  leased('sweep.charge', {
    store,
    scope: () => scope('tenant-7'),
    key: (key: Key) => key,
    window: '1h',
    lease: '1s',
    lookAfter: 0,
    keepInput: true,
    recover: resolve(ask),
    run: (lease): Promise<string> => lease.effect('capture', () => Promise.reject(new Error('the answer got lost'))),
  })

async function sweepModule(module: unknown, words: readonly string[] = [], io: Seen = ioInMemory()): Promise<Seen> {
  io.modules.set('own.mjs', module)
  await runCommandLine(['sweep', '--module', 'own.mjs', ...words], io)
  return io
}

describe('sweep', () => {
  it('drives what the module exports to an outcome, and closes what it opened', () =>
    withStoreWorld(async ({ db, run }) => {
      const charge = chargeIn(db, () => happened('r-81'))
      for (const key of ['k-1', 'k-2'] as Key[]) await charge(key).catch(() => undefined)
      const close = vi.fn()
      const module = { all: [charge], again: charge, other: 7, close }
      expect(await sweepModule(module)).toMatchObject({ out: 'app: taken 2, succeeded 2\n', err: '', code: 0 })
      expect(close).toHaveBeenCalledTimes(1)
      const { out } = await run(['inspect', '--operation', 'sweep.charge', '--state', 'succeeded'])
      expect(out.match(/succeeded/g)).toHaveLength(2)
      expect(await charge.outcome('k-1' as Key)).toMatchObject({ value: 'r-81', replayed: true })
    }))

  it('answers as JSON', () =>
    withStoreWorld(async ({ db }) => {
      const charge = chargeIn(db, () => stillUnknown())
      await charge('k-1' as Key).catch(() => undefined)
      const { out, err } = await sweepModule({ charge }, ['--json'], ioInMemory({ columns: 80 }))
      expect(JSON.parse(out)).toMatchObject([{ store: 'app', taken: 1, unknown: 1, succeeded: 0 }])
      expect(err).toBe('')
    }))

  it('goes on with --every, shows how far it is, and ends when it is asked to', () =>
    withStoreWorld(async ({ db }) => {
      const charge = chargeIn(db, () => happened('r-81'))
      const io = ioInMemory()
      const asked = new AbortController()
      io.untilEnded = () => asked.signal
      const ended = sweepModule({ charge }, ['--every', '5ms'], io)
      await expect.poll(() => io.err).toContain('app: taken 0\n')
      await charge('k-1' as Key).catch(() => undefined)
      await expect.poll(() => io.err).toContain('app: taken 1, succeeded 1\n')
      asked.abort()
      expect(await ended).toMatchObject({ out: 'app: taken 1, succeeded 1\n', code: 0 })
    }))

  it('says why a pass failed, and goes on', () =>
    withStoreWorld(async ({ db }) => {
      const charge = chargeIn(db, () => happened('r-81'))
      const io = ioInMemory()
      const asked = new AbortController()
      io.untilEnded = () => asked.signal
      const ended = sweepModule({ charge }, ['--every', '5ms'], io)
      await expect.poll(() => io.err).toContain('app: taken 0\n')
      await db.close()
      await expect.poll(() => io.err).toMatch(/\napp: The store was closed.* \[STORE_CLOSED\]\n/)
      asked.abort()
      expect(await ended).toMatchObject({ out: expect.stringContaining('app: interrupted: '), code: 1 })
    }))

  it('says in JSON and by its exit code that it was interrupted with more to do', () =>
    withStoreWorld(async ({ db }) => {
      const asked = new AbortController()
      const charge = chargeIn(db, () => {
        asked.abort()
        return happened('r-81')
      })
      for (const key of ['k-1', 'k-2'] as Key[]) await charge(key).catch(() => undefined)
      const io = ioInMemory()
      io.untilEnded = () => asked.signal
      const { out, code } = await sweepModule({ charge }, ['--batch', '1', '--json'], io)
      expect(JSON.parse(out)).toMatchObject([{ taken: 1, succeeded: 1, interrupted: true }])
      expect(code).toBe(1)
    }))

  it('ends with 1 where a look failed, and says why', () =>
    withStoreWorld(async ({ db }) => {
      const charge = chargeIn(db, () => didNotHappen())
      await charge('k-1' as Key).catch(() => undefined)
      const refuses = "BEGIN SELECT RAISE(ABORT, 'nothing is removed today'); END"
      await db.transact((tx) => tx.query(`CREATE TRIGGER keeps BEFORE DELETE ON reprise_marker ${refuses}`))
      const { out, err, code } = await sweepModule({ charge })
      expect({ out, code }).toEqual({ out: 'app: taken 1, error 1\n', code: 1 })
      expect(err).toMatch(/^app: sweep\.charge: .*nothing is removed today.*\n$/)
    }))

  it.each([
    [[], '--module is missing: which operations?'],
    [['--module', 'absent.mjs'], 'the module cannot be loaded: no such file'],
    [
      ['--module', 'none.mjs'],
      'the module exports no leased operation, or one of another copy of the package than this one',
    ],
  ])('refuses %j', async (words, message) => {
    const io = ioInMemory()
    const close = vi.fn()
    io.modules.set('none.mjs', { operation: () => 1, close })
    await runCommandLine(['sweep', ...words], io)
    expect(io.err).toBe(`reprise: ${message}\nSee reprise sweep --help.\n`)
    expect({ out: io.out, code: io.code }).toEqual({ out: '', code: 2 })
    expect(close).toHaveBeenCalledTimes(words.includes('none.mjs') ? 1 : 0)
  })

  it('does not print the password of a module that cannot connect', async () => {
    const io = ioInMemory()
    io.importModule = () => Promise.reject(new Error('cannot reach postgres://app:s3cret@db.example/app'))
    await runCommandLine(['sweep', '--module', 'own.mjs'], io)
    expect(io.err).toMatch(/^reprise: the module cannot be loaded: cannot reach postgres:\/\/…@db\.example\/app\n/)
  })
})

it('explains itself', () => {
  expect(commandHelp(sweepCommand)).toContain('It never runs anything again unasked.')
})
