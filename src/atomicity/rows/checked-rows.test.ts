import { describe, expect, it } from 'vitest'
import { checkedRows, type SoundRows, type SoundTransition } from './checked-rows.js'
import { checkName, tableParts } from './names.js'

/** A store that only says what it was asked. */
function recorder() {
  const asked: unknown[][] = []
  const ask =
    (name: string) =>
    async (...values: unknown[]): Promise<never> => {
      asked.push([name, ...values])
      return undefined as never
    }
  const sound: SoundRows = {
    insertOnce: ask('insertOnce'),
    upsert: ask('upsert'),
    addToSet: ask('addToSet'),
    transition: ask('transition'),
    lockRow: ask('lockRow'),
    readRow: ask('readRow'),
    updateRows: ask('updateRows'),
  }
  return { asked, rows: checkedRows(sound) }
}

const refusal = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  )

describe('what a store is asked', () => {
  it('is complete: defaults, lists, text, ms and the natural key are filled in', async () => {
    const { asked, rows } = recorder()
    await rows.insertOnce('a', { id: 1, note: null }, ['id'])
    await rows.transition({ table: 'a.b' }, { where: { id: 1 }, from: 'new', to: 'paid', command: 7n })
    await rows.lockRow('a', { id: 1 }, { wait: '2s' })
    await rows.lockRow('a', { id: 1 })
    await rows.updateRows('a', { id: null }, { note: true })
    expect(asked).toEqual([
      ['insertOnce', 'a', { id: 1, note: null }, ['id'], { id: 1 }],
      [
        'transition',
        { table: 'a.b' },
        {
          where: { id: 1 },
          column: 'state',
          from: ['new'],
          to: 'paid',
          command: '7',
          commandColumn: 'last_command',
          commands: undefined,
          versionColumn: undefined,
          set: {},
        },
      ],
      ['lockRow', 'a', { id: 1 }, 2000],
      ['lockRow', 'a', { id: 1 }, undefined],
      ['updateRows', 'a', { id: null }, { note: true }],
    ])
  })

  it('is what was looked at, whatever becomes of the argument', async () => {
    const { asked, rows } = recorder()
    const row = { id: 'a' }
    let reads = 0
    const shifty = Object.defineProperty({}, 'id', { enumerable: true, get: () => (reads++ === 0 ? 'sound' : {}) })
    await rows.insertOnce('a', row, ['id'])
    await rows.readRow('a', shifty as never)
    row.id = 'changed'
    expect(asked).toEqual([
      ['insertOnce', 'a', { id: 'a' }, ['id'], { id: 'a' }],
      ['readRow', 'a', { id: 'sound' }],
    ])
  })
})

describe('a transition that is remembered', () => {
  const move = { where: { id: 7n }, from: 'new', to: 'paid', command: 'e1', commands: 'shop.commands' }

  it('comes with the row to keep, whose fingerprint never changes between versions', async () => {
    const { asked, rows } = recorder()
    await rows.transition('orders', { ...move, versionColumn: 'version' })
    await rows.transition('orders', { ...move, where: { id: '7' }, from: ['paid'], set: { at: 2 } })
    await rows.transition('orders', { ...move, where: { id: 8 }, commandColumn: 'last' })
    const told = asked.map(([, , transition]) => transition as SoundTransition)
    expect(told.map(({ commandColumn, versionColumn }) => [commandColumn, versionColumn])).toEqual([
      [undefined, 'version'],
      [undefined, undefined],
      ['last', undefined],
    ])
    expect(told[0]?.commands).toEqual({
      table: 'shop.commands',
      row: { command: 'e1', fingerprint: 'json1-sha256:6CzI9Rffcb9y1AWSQRULA-ojaXurJUMqSfAS2h4MeHA' },
    })
    expect(told[1]?.commands).toEqual(told[0]?.commands)
    expect(told[2]?.commands?.row.fingerprint).not.toBe(told[0]?.commands?.row.fingerprint)
  })

  it.each([
    ['no table', { commands: 7 as never }],
    ['a name that is none', { commands: '' }],
    ['one column for two things', { versionColumn: 'state' }],
    ['a version that is set too', { versionColumn: 'version', set: { version: 3 } }],
  ])('is refused with %s', async (_what, more) => {
    const { asked, rows } = recorder()
    expect(await refusal(rows.transition('orders', { ...move, ...more }))).toMatchObject({ code: 'ARGUMENT_INVALID' })
    expect(asked).toEqual([])
  })
})

describe('writes of the rung algebra', () => {
  it('set all columns that are not in the key, and take a member whole', async () => {
    const { asked, rows } = recorder()
    await rows.upsert('a', { id: 1, total: 5, note: null }, ['id'])
    await rows.addToSet('a', { club: 'c', person: 7 })
    expect(asked).toEqual([
      ['upsert', 'a', { id: 1, total: 5, note: null }, ['id'], { total: 5, note: null }],
      ['addToSet', 'a', { club: 'c', person: 7 }],
    ])
  })

  it('are refused without a key, and for a member with NULL, which a unique index lets in any number of times', async () => {
    const { asked, rows } = recorder()
    const invalid = { code: 'ARGUMENT_INVALID' }
    expect(await refusal(rows.upsert('a', { total: 5 }, ['id']))).toMatchObject(invalid)
    expect(await refusal(rows.upsert('a', { id: 1 }, []))).toMatchObject(invalid)
    expect(await refusal(rows.addToSet('a', {}))).toMatchObject(invalid)
    expect(await refusal(rows.addToSet('a', { club: null }))).toMatchObject(invalid)
    expect(asked).toEqual([])
  })
})

describe('a refusal', () => {
  it('says where and what kind, and nothing of what was given', async () => {
    const { asked, rows } = recorder()
    const error = await refusal(rows.insertOnce('a', { id: 'a', secret: { secret: 'secret' } as never }, ['id']))
    expect(error).toMatchObject({ code: 'ARGUMENT_INVALID', details: { position: 1, kind: 'an object' } })
    expect((error as Error).message).toMatch(/^The row has a value in column 2 that no column holds \(an object\)/)
    expect((error as Error).message).not.toContain('secret')
    expect(asked).toEqual([])
  })

  it.each([
    [new Date(0), 'a Date'],
    [undefined, 'undefined'],
    [Number.NaN, 'not a number'],
    ['\udc00', 'text with half a character'],
    [new Map(), 'an object'],
  ])('of %o names its kind', async (value, kind) => {
    const { rows } = recorder()
    expect(await refusal(rows.readRow('a', { id: value as never }))).toMatchObject({ details: { position: 0, kind } })
  })

  it('is a rejection, never a throw', () => {
    const { rows } = recorder()
    expect(() => rows.transition(undefined as never, undefined as never).catch(() => undefined)).not.toThrow()
  })
})

describe('names', () => {
  it('are counted in bytes', () => {
    expect(checkName('x'.repeat(63))).toHaveLength(63)
    expect(() => checkName('x'.repeat(64))).toThrow(expect.objectContaining({ details: { bytes: 64 } }))
    expect(() => checkName('ä'.repeat(32))).toThrow(expect.objectContaining({ details: { bytes: 64 } }))
    expect(checkName('€'.repeat(21))).toHaveLength(21)
  })

  it('of tables have a schema before one dot, or apart', () => {
    expect(tableParts('a')).toEqual(['a'])
    expect(tableParts('a.b')).toEqual(['a', 'b'])
    expect(tableParts({ table: 'a.b' })).toEqual(['a.b'])
    expect(tableParts({ schema: 's', table: 'a.b' })).toEqual(['s', 'a.b'])
  })
})
