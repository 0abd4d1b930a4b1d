import { describe, expect, it } from 'vitest'
import { chargeOf, withStoreWorld } from '../../../test/cli/store-world.js'
import { happened } from '../../idempotency/index.js'
import { type Key, scope } from '../../identity/index.js'
import { commandHelp } from '../option-table.js'
import { inspectCommand } from './inspect-command.js'

const moment = '\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z'
const id = 'sha256:[\\w-]{43}'

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
      expect(out).toMatch(new RegExp(`^${id} {2}unknown {4}charge {2}claimed ${moment} {2}unclassified\\n$`))
      expect((await run(['inspect', '--operation', 'note'])).out).toMatch(
        new RegExp(`^${id} {2}succeeded {2}note {2}ended ${moment}\\n$`),
      )
      expect((await run(['inspect', '--state', 'failed'])).out).toBe('no records\n')
    }))

  it('in pages, each of which says where the next one begins', () =>
    withStoreWorld(async ({ run, makeUnknown }) => {
      for (const key of ['k-1', 'k-2', 'k-3']) await makeUnknown(key)
      const first = await run(['inspect', '--limit', '2'])
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
      expect(out).toMatch(new RegExp(`\nfirstClaimedAt +${moment}\n`))
      expect(out).toMatch(/\nIt may or may not have happened: find out, then reprise settle\.\n$/)
      expect(code).toBe(0)
      const byId = await run(['inspect', '--id', /sha256:\S+/.exec(out)?.[0] ?? ''])
      expect(byId.out.replace(/^now.*$/m, '')).toBe(out.replace(/^now.*$/m, ''))
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
    [['--key', 'k-1'], 'a record is named by --operation, --scope and --key together, or by --id'],
    [['--scope', 'a'], 'a record is named by --operation, --scope and --key together, or by --id'],
    [['--id', 'k-1'], '--id is the name of a record, as inspect shows it'],
    [['--id', `sha256:${'a'.repeat(43)}`, '--key', 'k-1'], '--id stands in place of --scope and --key'],
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

it('explains itself', () => {
  expect(commandHelp(inspectCommand)).toContain('3 there is no such record')
})
