import { afterEach, describe, expect, it, vi } from 'vitest'
import { webStorage } from './storage.js'

/** What every tab sees in the end; each tab has a copy, which hears of others' writes later. */
class Tabs {
  readonly items = new Map<string, string>()
  delayMs = 0

  tab() {
    const copy = new Map(this.items)
    const later = (change: () => void) => void setTimeout(change, this.delayMs)
    return {
      copy,
      getItem: (id: string) => copy.get(id) ?? null,
      setItem: (id: string, key: string) => {
        copy.set(id, key)
        this.items.set(id, key)
        for (const other of this.others) if (other !== copy) later(() => void other.set(id, this.items.get(id) ?? key))
      },
      removeItem: (id: string) => {
        copy.delete(id)
        this.items.delete(id)
        for (const other of this.others) if (other !== copy) later(() => void other.delete(id))
      },
    }
  }

  readonly others = new Set<Map<string, string>>()

  open() {
    const tab = this.tab()
    this.others.add(tab.copy)
    return tab
  }
}

afterEach(() => {
  vi.unstubAllGlobals()
})

const withoutLocks = () => vi.stubGlobal('navigator', {})

/** Web Locks of one browser: one holder of a name at a time. */
function withLocks() {
  const held = new Map<string, Promise<unknown>>()
  const request = (name: string, work: () => Promise<unknown>) => {
    const mine = (held.get(name) ?? Promise.resolve()).then(work, work)
    held.set(name, mine)
    return mine
  }
  vi.stubGlobal('navigator', { locks: { request } })
}

describe.each([
  ['with Web Locks', withLocks],
  ['without', withoutLocks],
])('Web Storage %s', (_name, locks) => {
  it('keeps the first key, and forgets it only by its name', async () => {
    locks()
    const storage = new Tabs().open()
    const keys = webStorage(storage)
    expect(await keys.keep('id', 'first')).toBe('first')
    expect(await keys.keep('id', 'second')).toBe('first')
    await keys.forget('id', 'second')
    expect(storage.getItem('id')).toBe('first')
    await keys.forget('id', 'first')
    expect(storage.getItem('id')).toBeNull()
    expect(await keys.keep('id', 'third')).toBe('third')
  })

  it('two tabs at once have one key, though each sees the write of the other later', async () => {
    locks()
    const tabs = new Tabs()
    tabs.delayMs = 5
    const [one, two] = [webStorage(tabs.open()), webStorage(tabs.open())]
    const [first, second] = await Promise.all([one.keep('id', 'one'), two.keep('id', 'two')])
    expect(first).toBe(second)
    expect(tabs.items.get('id')).toBe(first)
  })

  it('a storage that refuses to write hands out no key', async () => {
    locks()
    const full = {
      getItem: () => null,
      setItem: () => {
        throw new Error('quota')
      },
      removeItem: () => {},
    }
    await expect(webStorage(full).keep('id', 'key')).rejects.toThrow('quota')
  })
})

it('without Web Locks a key that is found is looked at again: another tab may be writing over it', async () => {
  withoutLocks()
  const storage = new Tabs().open()
  storage.setItem('id', 'first')
  const kept = webStorage(storage).keep('id', 'mine')
  storage.setItem('id', 'over')
  expect(await kept).toBe('over')
})
