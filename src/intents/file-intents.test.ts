import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
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
    expect(await storage.keep('id', 'one')).toBe('one')
    await storage.forget('id', 'two')
    expect(await storage.keep('id', 'three')).toBe('one')
    await storage.forget('id', 'one')
    await storage.forget('id', 'one')
    expect(await storage.keep('id', 'three')).toBe('three')
    expect(readdirSync(folder)).toEqual(['id'])
  })

  it('a folder that cannot be one hands out no key', async () => {
    const file = join(folder, '..', 'file')
    writeFileSync(file, '')
    await expect(fileIntents(file).keep('id', 'key')).rejects.toMatchObject({
      code: expect.stringMatching(/EEXIST|ENOTDIR/),
    })
  })
})
