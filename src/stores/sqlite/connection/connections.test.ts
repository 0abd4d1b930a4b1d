import Database from 'libsql'
import { describe, expect, it } from 'vitest'
import { freshFile, rowsIn, stranger } from '../../../../test/stores/sqlite/files.js'
import { seededRandom } from '../../../kernel/index.js'
import { manualClock } from '../../../testing/index.js'
import { Connections } from './connections.js'
import { bindable, firstOf, isBusy, isOpen, plain, rowsOf, type SqliteHandle } from './driver.js'

describe('drivers', () => {
  it('tell whether a transaction is open, or are asked', () => {
    const handle = stranger(freshFile())
    // A driver that does not tell.
    const silent: SqliteHandle = {
      prepare: (text) => handle.prepare(text),
      exec: (text) => handle.exec(text),
      close: () => handle.close(),
    }
    for (const each of [handle, silent]) {
      expect(isOpen(each)).toBe(false)
      each.exec('BEGIN IMMEDIATE')
      expect(isOpen(each)).toBe(true)
      expect(handle.inTransaction).toBe(true)
      each.exec('ROLLBACK')
      expect(isOpen(each)).toBe(false)
      expect(handle.inTransaction).toBe(false)
    }
  })

  it('bind the values of this call, whatever was asked before', () => {
    const handle = stranger(freshFile())
    const statement = handle.prepare('SELECT ? AS value')
    expect(rowsOf(statement, [1])).toEqual([{ value: 1 }])
    // libsql itself answers 1 here.
    expect(firstOf(statement, [2])).toEqual({ value: 2 })
    expect(rowsOf(statement, [new Uint8Array([7])])).toEqual([{ value: new Uint8Array([7]) }])
  })

  it('give rows of different kinds, and what is handed out is a plain object', () => {
    const cells = { text: 'a', bytes: new Uint8Array([7]).buffer, ['__proto__']: 'a column' }
    // As node:sqlite gives them, as the others do, and as a list.
    const given = [Object.assign(Object.create(null), cells), { ...cells }, Object.values(cells)]
    const handed = given.map((row: object) => plain(row))
    expect(handed.map((row) => Object.getPrototypeOf(row))).toEqual([
      Object.prototype,
      Object.prototype,
      Array.prototype,
    ])
    for (const row of handed) expect(Object.values(row)).toEqual(['a', new Uint8Array([7]), 'a column'])
    expect([null, undefined, 7].map((value) => plain(value))).toEqual([null, undefined, 7])
  })

  it('get no value that one of them cannot take', () => {
    const largest = 2n ** 63n - 1n
    expect([true, false, null, 'text', 1.5, 2n, largest, -largest - 1n].map((value) => bindable(value, 0))).toEqual([
      1,
      0,
      null,
      'text',
      1.5,
      2n,
      largest,
      -largest - 1n,
    ])
    for (const value of [undefined, {}, [], Number.NaN, Symbol('x'), largest + 1n, -largest - 2n]) {
      expect(() => bindable(value, 3)).toThrow(
        expect.objectContaining({ details: { position: 3, kind: typeof value } }),
      )
    }
  })
})

describe('connections', () => {
  const waiting = { waitMs: 1_000, readOnly: false }

  function connectionsOn(file: string) {
    const opened: Database.Database[] = []
    const connections = new Connections({
      domain: 'items',
      open: () => {
        const handle = new Database(file)
        opened.push(handle)
        return handle
      },
      readers: 2,
      queue: 10,
      metaTable: 'meta',
      clock: manualClock(),
      random: seededRandom(1),
    })
    return { connections, opened }
  }

  it('are opened once and set up alike, and those that read cannot write', async () => {
    const { connections, opened } = connectionsOn(freshFile())
    for (const readOnly of [false, true, false, true]) {
      const { handle, giveBack } = await connections.take({ ...waiting, readOnly })
      const settings = ['journal_mode', 'synchronous', 'busy_timeout', 'query_only'].map(
        (name) => Object.values(rowsOf(handle.prepare(`PRAGMA ${name}`), [])[0] ?? {})[0],
      )
      expect(settings).toEqual(['wal', 2, 0, readOnly ? 1 : 0])
      giveBack('keep')
    }
    expect(opened).toHaveLength(2)
    await connections.close()
    expect(opened.map(({ open }) => open)).toEqual([false, false])
  })

  it('are all closed after a COMMIT that failed, and the next one to take any writes first', async () => {
    const file = freshFile()
    const { connections, opened } = connectionsOn(file)
    const idle = await connections.take({ ...waiting, readOnly: true })
    idle.giveBack('keep')
    const busy = await connections.take({ ...waiting, readOnly: true })
    const writer = await connections.take(waiting)
    writer.giveBack('condemn')
    expect(opened.map(({ open }) => open)).toEqual([true, false])
    // One that reads comes next: it too sees only what is certain.
    const reader = await connections.take({ ...waiting, readOnly: true })
    expect(rowsIn(file, 'SELECT name, value FROM meta')).toEqual([['heals', '1']])
    reader.giveBack('keep')
    busy.giveBack('keep')
    expect(opened.map(({ open }) => open)).toEqual([false, false, true, true])
    ;(await connections.take(waiting)).giveBack('keep')
    expect(rowsIn(file, 'SELECT value FROM meta')).toEqual([['1']])
    await connections.close()
  })

  it('stay in doubt while the healing write fails', async () => {
    const file = freshFile()
    const { connections } = connectionsOn(file)
    connections.distrustLog()
    const other = stranger(file)
    other.exec('BEGIN IMMEDIATE')
    const failing = await connections.take({ ...waiting, waitMs: 0 }).catch((error: unknown) => error)
    expect(isBusy(failing)).toBe(true)
    other.exec('ROLLBACK')
    ;(await connections.take(waiting)).giveBack('keep')
    expect(rowsIn(file, 'SELECT value FROM meta')).toEqual([['1']])
    await connections.close()
  })

  it('leave nothing open behind a writer that is dropped in the middle', async () => {
    const file = freshFile()
    const { connections } = connectionsOn(file)
    const { handle, giveBack } = await connections.take(waiting)
    handle.exec('BEGIN IMMEDIATE')
    handle.exec('CREATE TABLE dropped (id)')
    giveBack('drop')
    const other = stranger(file)
    other.exec('BEGIN IMMEDIATE')
    expect(rowsOf(other.prepare("SELECT name FROM sqlite_schema WHERE name = 'dropped'"), [])).toEqual([])
    other.exec('ROLLBACK')
    await connections.close()
  })
})
