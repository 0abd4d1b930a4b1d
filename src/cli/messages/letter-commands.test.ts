import { describe, expect, it } from 'vitest'
import { ioInMemory } from '../../../test/cli/io-in-memory.js'
import { withLetters } from '../../../test/cli/letter-world.js'
import { withStoreWorld } from '../../../test/cli/store-world.js'
import { commandHelp } from '../option-table.js'
import { deadLettersCommand } from './dead-letters-command.js'
import { discardCommand } from './discard-command.js'
import { redriveCommand } from './redrive-command.js'

const one = ['--reader', 'receipts', '--id', 'm-1']
const why = ['--reason', 'fixed in 4.2', '--actor', 'ada']

describe('dead-letters', () => {
  it('shows groups, then letters, and never data', () =>
    withLetters(2, async ({ run }) => {
      const { out, err, code } = await run(['dead-letters'])
      const [group, first, second, ...rest] = out.split('\n')
      expect(group).toMatch(/^2 of receipts: \w+, the oldest (just now|\d+ \w+ ago)$/)
      expect(first).toMatch(/^m-1 {2}open {8}receipts {2}\w+ {2}order.placed {2}key order of m-1 {2}/)
      expect(second).toMatch(/^m-2 {2}open/)
      expect([rest, err, code]).toEqual([[''], '', 0])
      expect(out).not.toContain('4711')
      const json = JSON.parse((await run(['dead-letters', '--json', '--key', 'order of m-2', '--limit', '1'])).out)
      expect(json).toMatchObject({ letters: [{ id: 'm-2', state: 'open' }], groups: [{ letters: 2 }], more: true })
    }))

  it('shows one with its history, and its data where that is asked for', () =>
    withLetters(1, async ({ run }) => {
      const { out } = await run(['dead-letters', ...one])
      expect(out).toMatch(/^reader +receipts$/m)
      expect(out).toMatch(/^attempt +\{/m)
      expect(out).toMatch(/^data +15 characters; --data shows them$/m)
      expect(out).toContain('Decide: reprise redrive')
      expect((await run(['dead-letters', ...one, '--data'])).out).toMatch(/^data +\{"secret":4711\}$/m)
      const { letter } = JSON.parse((await run(['dead-letters', ...one, '--source', '/app', '--data', '--json'])).out)
      expect(letter).toMatchObject({ id: 'm-1', data: { secret: 4711 } })
      const absent = await run(['dead-letters', '--reader', 'receipts', '--id', 'm-9'])
      expect([absent.out, absent.code]).toEqual(['there is no such letter\n', 3])
    }))

  it('says that there are none', () =>
    withStoreWorld(async ({ run }) => {
      expect(await run(['dead-letters'])).toMatchObject({ out: 'no dead letters\n', code: 0 })
    }))
})

describe('redrive', () => {
  it('lets one go, and what waits behind it', () =>
    withLetters(1, async ({ run, consumed }) => {
      expect(await run(['redrive', ...one, ...why])).toMatchObject({
        out: 'redriven: its reader takes it up\n',
        err: '',
        code: 0,
      })
      expect(await consumed()).toEqual(['m-1', 'm-1-next'])
      const { out } = await run(['dead-letters', ...one])
      expect(out).toMatch(/^decided +redrive by ada: fixed in 4.2$/m)
      const again = await run(['redrive', ...one])
      expect(again.err).toBe('reprise: The dead letter is closed. [LETTER_REFUSED]\n')
      expect(again.code).toBe(3)
    }))

  it('lets many go, up to the cap, and shows how far it is on a terminal', () =>
    withLetters(3, async ({ run, consumed }) => {
      const { out, err } = await run(
        ['redrive', '--reader', 'receipts', '--most', '2', '--over', '0s'],
        ioInMemory({ columns: 80 }),
      )
      expect(out).toBe('redriven: 2, left: 1\n')
      expect(err).toBe('\r1 redriven\r2 redriven\r\u001b[K')
      expect(await consumed()).toHaveLength(4)
      const rest = JSON.parse((await run(['redrive', '--reader', 'receipts', '--over', '0s', '--json'])).out)
      expect(rest).toEqual({ redriven: 1, elsewhere: 0, left: 0, interrupted: false })
    }))

  it('ends after the letter at hand when it is asked to', () =>
    withLetters(2, async ({ run }) => {
      const io = ioInMemory()
      io.untilEnded = () => AbortSignal.abort()
      await run(['redrive', '--reader', 'receipts'], io)
      expect(io.out).toBe('redriven: 0, left: 2\ninterrupted: there may be more to redrive\n')
      expect(io.code).toBe(1)
    }))

  it('sends other data under a derived id', () =>
    withLetters(1, async ({ run, consumed }) => {
      const io = ioInMemory()
      io.files.set('data.json', '{"currency":"EUR"}')
      await run(['redrive', ...one, '--edit', 'data.json', ...why, '--json'], io)
      const { id } = JSON.parse(io.out)
      expect(id).toMatch(/^e1-/)
      expect(await consumed()).toEqual([id, 'm-1-next'])
    }))

  it.each([
    [[], 'which letters? --reader, --key or --code, or --reader and --id'],
    [['--id', 'm-1'], '--id needs --reader: each reader has its own letter of a message'],
    [['--source', '/app', '--reader', 'receipts'], '--source goes with --id'],
    [[...one, '--key', 'a'], '--id stands in place of --key'],
    [[...one, '--most', '1'], '--most is for many letters, --id for one'],
    [['--reader', 'receipts', '--edit', 'a.json'], '--edit is for one letter: --reader and --id'],
    [[...one, '--edit', 'a.json'], '--reason is missing: say why it is edited'],
    [[...one, '--edit', 'a.json', ...why], '--edit: the file a.json cannot be read'],
    [[...one, '--edit', 'bad.json', ...why], '--edit: the file bad.json is not JSON'],
    [
      ['--reader', 'receipts', '--most', '0'],
      'The option most: It is a whole number from 1 to 1000. [ARGUMENT_INVALID]',
    ],
    [[...one, '--reason', ' '], 'A decision needs a reason of 1 to 1,000 characters. [ARGUMENT_INVALID]'],
  ])('refuses %j, and nothing is decided', (words, message) =>
    withLetters(1, async ({ run }) => {
      const io = ioInMemory()
      io.files.set('bad.json', '{currency}')
      await run(['redrive', ...words], io)
      expect([io.err, io.out, io.code]).toEqual([`reprise: ${message}\nSee reprise redrive --help.\n`, '', 2])
      expect(JSON.parse((await run(['dead-letters', '--state', 'open', '--json'])).out).letters).toHaveLength(1)
    }),
  )

  it('says that there is no such reader, and knows one that has no letters', () =>
    withLetters(1, async ({ run }) => {
      const nope = await run(['redrive', '--reader', 'nope', '--over', '0'])
      const said = 'reprise: There is no reader nope, and no dead letter of one. [LETTER_REFUSED]\n'
      expect([nope.out, nope.err, nope.code]).toEqual(['', said, 3])
      const known = await run(['redrive', '--reader', 'receipts', '--code', 'NOBODY', '--over', '0'])
      expect([known.out, known.code]).toEqual(['redriven: 0, left: 0\n', 0])
    }))

  it('does not write data in the clear that a codec had written', () =>
    withLetters(1, async ({ db, run }) => {
      await db.transact((tx) => tx.query(`update reprise_dead_letter set codec = 'vault'`))
      const io = ioInMemory()
      io.files.set('data.json', '{}')
      await run(['redrive', ...one, '--edit', 'data.json', ...why], io)
      expect([io.err, io.code]).toEqual([expect.stringContaining('written by the codec vault'), 2])
      expect((await run(['dead-letters', ...one, '--data'])).out).toMatch(/^data .* a codec that the command line /m)
    }))
})

describe('discard', () => {
  it('gives one up, with a reason that is kept, and its key goes on', () =>
    withLetters(1, async ({ run, consumed }) => {
      const discarded = await run(['discard', ...one, '--reason', 'a test order', '--actor', 'ada'])
      expect(discarded).toMatchObject({ out: 'discarded\n', err: '', code: 0 })
      expect(await consumed()).toEqual(['m-1-next'])
      expect((await run(['dead-letters', ...one])).out).toMatch(/^decided +discard by ada: a test order$/m)
    }))

  it.each([
    [['--reason', 'x'], 2, 'which letter? --reader and --id'],
    [one, 2, '--reason is missing: say why nobody needs it'],
    [['--reader', 'receipts', '--id', 'm-9', '--reason', 'x'], 3, 'There is no such dead letter. [LETTER_REFUSED]'],
    [[...one, '--code', 'x', '--reason', 'x'], 2, 'Unknown option: --code'],
  ])('refuses %j', (words, exit, message) =>
    withLetters(1, async ({ run }) => {
      const { out, err, code } = await run(['discard', ...words])
      expect(err.split('\n')[0]).toContain(`reprise: ${message}`)
      expect([out, code]).toEqual(['', exit])
    }),
  )
})

it('explain themselves', () => {
  expect(commandHelp(deadLettersCommand)).toContain('it may be private')
  expect(commandHelp(redriveCommand)).toContain('derived from its own')
  expect(commandHelp(discardCommand)).toContain('What it was to do, nobody does')
})
