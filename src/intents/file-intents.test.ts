import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { uuidv4 } from '../kernel/index.js'
import { fileIntents } from './file-intents.js'
import { intents } from './intents.js'

let folder: string
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'intents-')), 'keys')
})
afterEach(() => rmSync(join(folder, '..'), { recursive: true, force: true }))

describe('keys in files', () => {
  it('are there for the next process, and gone after the end', async () => {
    const first = await intents({ storage: fileIntents(folder) }).open('nightly', { day: 7 })
    const again = await intents({ storage: fileIntents(folder) }).open('nightly', { day: 7 })
    expect([again.key, again.isKept]).toEqual([first.key, true])
    await again.end()
    await first.end()
    expect(readdirSync(folder)).toEqual([])
  })

  it('of thirty who come at once, one is first; nothing else is left in the folder', async () => {
    const keys = await Promise.all(
      Array.from({ length: 30 }, () => intents({ storage: fileIntents(folder) }).open('nightly', 1)),
    )
    expect(new Set(keys.map(({ key }) => key)).size).toBe(1)
    expect(keys.filter(({ isKept }) => !isKept)).toHaveLength(1)
    expect(readdirSync(folder)).toHaveLength(1)
  })

  it('an end of a key that was kept before leaves the one of now', async () => {
    const storage = fileIntents(folder)
    const [one, two, three] = [1, 2, 3].map(() => `${uuidv4()} 1770000000000`) as [string, string, string]
    expect(await storage.keep('id', one)).toBe(one)
    await storage.forget('id', two)
    expect(await storage.keep('id', three)).toBe(one)
    await storage.forget('id', one)
    await storage.forget('id', one)
    expect(await storage.keep('id', three)).toBe(three)
    expect(readdirSync(folder)).toEqual(['id'])
  })

  const spoil = async (change: (text: string) => string) => {
    const keeper = intents({ storage: fileIntents(folder) })
    const first = await keeper.open('nightly', 1)
    const [name = ''] = readdirSync(folder)
    const file = join(folder, name)
    writeFileSync(file, change(readFileSync(file, 'utf8')))
    return { keeper, first, file }
  }

  it.each<[string, (text: string) => string]>([
    ['has a line break at its end', (text) => `${text}\r\n`],
    ['has line breaks of another system', (text) => text.replace(' ', '\r\n')],
    ['has lost its time', (text) => text.split(' ')[0] ?? ''],
    ['has lost half of its time', (text) => text.slice(0, -6)],
    ['has a time that is none', (text) => `${text.split(' ')[0]} -Infinity`],
  ])('a whole key is kept where its file %s', async (_name, change) => {
    const { keeper, first } = await spoil(change)
    const again = await keeper.open('nightly', 1)
    expect([again.key, again.isKept]).toEqual([first.key, true])
    await again.end()
    expect(readdirSync(folder)).toEqual([])
  })

  it.each<[string, (text: string) => string]>([
    ['is empty', () => ''],
    ['is cut', (text) => text.slice(0, 20)],
    ['is cut by one character', (text) => text.slice(0, 35)],
    ['goes on', (text) => `f${text}`],
    ['has fields of a header in it', () => `evil\r\nx-admin:1 ${1_770_000_000_000}`],
    ['holds something else', () => 'garbage'],
  ])('no new key takes the place of one whose file %s, until somebody has looked', async (_name, change) => {
    const { keeper, first, file } = await spoil(change)
    for (let time = 0; time < 2; time += 1) {
      await expect(keeper.open('nightly', 1)).rejects.toMatchObject({
        code: 'INTENT_UNREADABLE',
        message: expect.stringContaining(file),
      })
    }
    rmSync(file)
    expect((await keeper.open('nightly', 1)).key).not.toBe(first.key)
    expect(readdirSync(folder)).toHaveLength(1)
  })

  it('a folder that cannot be one hands out no key', async () => {
    const file = join(folder, '..', 'file')
    writeFileSync(file, '')
    await expect(fileIntents(file).keep('id', 'key')).rejects.toMatchObject({
      code: expect.stringMatching(/EEXIST|ENOTDIR/),
    })
  })
})
