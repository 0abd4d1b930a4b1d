import { describe, expect, it } from 'vitest'
import { checkedRows, type SoundRows } from './checked-rows.js'
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
