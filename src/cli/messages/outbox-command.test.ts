import { describe, expect, it } from 'vitest'
import { ioInMemory } from '../../../test/cli/io-in-memory.js'
import { withLetters } from '../../../test/cli/letter-world.js'
import { withStoreWorld } from '../../../test/cli/store-world.js'
import { runCommandLine } from '../index.js'

describe('outbox', () => {
  it('shows how far each reader is', () =>
    withLetters(2, async ({ run, consumed }) => {
      const { out } = await run(['outbox'])
      expect(out).toMatch(
        /^receipts \(consumer\): 4 messages of 2 keys, the oldest \d+ \w+ old; 2 keys parked; 2 dead letters\n$/,
      )
      expect(JSON.parse((await run(['outbox', '--json'])).out)).toMatchObject({
        readers: [{ reader: 'receipts', kind: 'consumer', depth: 4, parked: 2, letters: 2 }],
        depth: 4,
      })
      await run(['redrive', '--reader', 'receipts', '--over', '0s'])
      await consumed()
      expect((await run(['outbox'])).out).toBe('receipts (consumer): nothing is before it\n')
    }))

  it('says that nobody reads', () =>
    withStoreWorld(async ({ run }) => {
      expect(await run(['outbox'])).toMatchObject({ out: 'no readers\n', code: 0 })
    }))
})

/** Runs a command of two words; `run` puts the address behind the first. */
async function runOn(url: string, ...words: readonly string[]) {
  const io = ioInMemory()
  await runCommandLine([...words, '--url', url], io)
  return io
}

describe('outbox new-epoch', () => {
  it('raises the epoch of every key', () =>
    withLetters(1, async ({ db, url }) => {
      const heads = () => db.transact(async (tx) => (await tx.query('select epoch from reprise_head')).rows)
      const [before] = await heads()
      const { out, code } = await runOn(url, 'outbox', 'new-epoch', '--reason', 'restored', '--yes')
      expect([out, code]).toEqual(['new epochs: 1 key, because: restored\n', 0])
      expect(Number((await heads())[0]?.['epoch'])).toBeGreaterThan(Number(before?.['epoch']))
    }))

  it.each([
    [['--yes'], '--reason is missing: say what was restored'],
    [['--reason', 'x'], '--yes is missing: all keys begin a new epoch, which cannot be undone'],
  ])('asks first: %j', (words, message) =>
    withStoreWorld(async ({ url }) => {
      const { err, code } = await runOn(url, 'outbox', 'new-epoch', ...words)
      expect([err, code]).toEqual([`reprise: ${message}\nSee reprise outbox new-epoch --help.\n`, 2])
    }),
  )
})

describe('outbox forget', () => {
  it('forgets a reader, and only one that is there', () =>
    withLetters(1, async ({ run, url }) => {
      const forgotten = await runOn(url, 'outbox', 'forget', 'receipts', '--yes')
      expect([forgotten.out, forgotten.code]).toEqual(['forgotten: receipts\n', 0])
      expect((await run(['outbox'])).out).toBe('no readers\n')
      const absent = await runOn(url, 'outbox', 'forget', 'receipts', '--yes', '--json')
      expect([absent.out, absent.code]).toEqual(['{"reader":"receipts","forgotten":false}\n', 3])
    }))

  it.each([
    [['--yes'], 'which reader? reprise outbox forget READER'],
    [['receipts'], '--yes is missing: what the reader has processed is forgotten for good'],
  ])('asks first: %j', (words, message) =>
    withStoreWorld(async ({ url }) => {
      const { err, code } = await runOn(url, 'outbox', 'forget', ...words)
      expect([err, code]).toEqual([`reprise: ${message}\nSee reprise outbox forget --help.\n`, 2])
    }),
  )
})
