import { describe, expect, it, vi } from 'vitest'
import { intents, isDefinite } from './intents.js'
import type { IntentStorage } from './storage.js'

function inMemory() {
  const kept = new Map<string, string>()
  const storage: IntentStorage = {
    keep(id, key) {
      if (!kept.has(id)) kept.set(id, key)
      return kept.get(id) as string
    },
    forget(id, key) {
      if (kept.get(id) === key) kept.delete(id)
    },
  }
  return { kept, storage }
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const cart = { items: ['lamp'], amountMinor: 1200 }
const answers = (status: number) => async () => ({ status })

describe('a keeper of keys', () => {
  it('has one key for an intent, also in another keeper on the same storage: after a reload, in another tab', async () => {
    const { storage } = inMemory()
    const first = await intents({ storage }).open('checkout', cart)
    const second = await intents({ storage }).open('checkout', { amountMinor: 1200, items: ['lamp'] })
    expect(second.key).toBe(first.key)
    expect([first.isKept, second.isKept]).toEqual([false, true])
    expect(first.key).toMatch(uuid)
  })

  it('keeps the key before it is handed out', async () => {
    const { kept, storage } = inMemory()
    await intents({ storage }).run('checkout', cart, async (key) => {
      expect([...kept.values()]).toEqual([expect.stringContaining(key)])
      return { status: 201 }
    })
  })

  it('has another key for other content, and the first one again when the edit is undone', async () => {
    const keeper = intents(inMemory())
    const first = await keeper.open('checkout', cart)
    const edited = await keeper.open('checkout', { ...cart, amountMinor: 1300 })
    const other = await keeper.open('gift', cart)
    const again = await keeper.open('checkout', cart)
    expect(new Set([first.key, edited.key, other.key]).size).toBe(3)
    expect(again.key).toBe(first.key)
  })

  it('an ended intent is over for everybody, and a late end of it does not end the one after it', async () => {
    const { kept, storage } = inMemory()
    const [tab, other] = [intents({ storage }), intents({ storage })]
    const [first, same] = [await tab.open('checkout', cart), await other.open('checkout', cart)]
    await first.end()
    const next = await tab.open('checkout', cart)
    expect(next.key).not.toBe(first.key)
    await same.end()
    expect([...kept.values()]).toEqual([expect.stringContaining(next.key)])
  })

  it('gives up a key that the receiver has forgotten, and a text that is no key of ours', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    try {
      const { kept, storage } = inMemory()
      const keeper = intents({ storage, windowMs: 60_000 })
      const first = await keeper.open('checkout', cart)
      vi.setSystemTime(Date.now() + 59_999)
      expect((await keeper.open('checkout', cart)).key).toBe(first.key)
      vi.setSystemTime(Date.now() + 1)
      const next = await keeper.open('checkout', cart)
      expect(next.key).not.toBe(first.key)
      for (const id of kept.keys()) kept.set(id, 'spoilt')
      expect((await keeper.open('checkout', cart)).key).toMatch(uuid)
    } finally {
      vi.useRealTimers()
    }
  })

  it('refuses what is no storage or window, and a storage that keeps nothing', async () => {
    const invalid = expect.objectContaining({ code: 'ARGUMENT_INVALID' })
    for (const options of [undefined, null, {}, { storage: null }, { storage: {} }, { ...inMemory(), windowMs: 0 }])
      expect(() => intents(options as never)).toThrow(invalid)
    expect(() => intents({ ...inMemory(), windowMs: Number.NaN })).toThrow(invalid)
    const broken = intents({ storage: { keep: () => 'spoilt', forget: () => {} } })
    await expect(broken.open('checkout', cart)).rejects.toMatchObject({ code: 'ROW_UNSETTLED' })
  })
})

describe('run', () => {
  const definite = [200, 201, 204, 303, 400, 402, 404, 410, 415]
  const open = [0, 401, 403, 408, 409, 412, 421, 422, 423, 425, 428, 429, 500, 502, 503, 504]

  it.each(definite)('ends at %d', async (status) => {
    const { kept, storage } = inMemory()
    const answer = await intents({ storage }).run('checkout', cart, answers(status))
    expect([answer, kept.size, isDefinite({ status })]).toEqual([{ status }, 0, true])
  })

  it.each(open)('does not end at %d', async (status) => {
    const { kept, storage } = inMemory()
    const answer = await intents({ storage }).run('checkout', cart, answers(status))
    expect([answer, kept.size, isDefinite({ status })]).toEqual([{ status }, 1, false])
  })

  it('does not end where it throws: the next one sends the same key', async () => {
    const { kept, storage } = inMemory()
    const keeper = intents({ storage })
    const sent: string[] = []
    const lost = async (key: string): Promise<Response> => {
      sent.push(key)
      throw new TypeError('fetch failed')
    }
    await expect(keeper.run('checkout', cart, lost)).rejects.toThrow('fetch failed')
    await keeper.run('checkout', cart, async (key) => {
      sent.push(key)
      return new Response(null, { status: 201 })
    })
    expect(new Set(sent).size).toBe(1)
    expect(kept.size).toBe(0)
  })

  it('does not end at a value without a status, unless the caller says so: the JSON of a 504 is a value too', async () => {
    const { kept, storage } = inMemory()
    const keeper = intents({ storage })
    const sent: string[] = []
    const answers = [new Response('{"error":"late"}', { status: 504 }), new Response('{"id":1}', { status: 201 })]
    const send = (key: string): Promise<{ id?: number }> => {
      sent.push(key)
      return (answers.shift() as Response).json() as Promise<{ id?: number }>
    }
    // @ts-expect-error A value without a status needs the fourth argument.
    await keeper.run('checkout', cart, send)
    expect(kept.size).toBe(1)
    await keeper.run('checkout', cart, send, ({ id }) => id !== undefined)
    expect(new Set(sent).size).toBe(1)
    expect(kept.size).toBe(0)
  })

  it.each([undefined, null, 'paid', 201, {}, [], { status: 'paid' }, { status: '201' }, { response: { status: 201 } }])(
    'is not told by %j',
    (value) => {
      expect(isDefinite(value)).toBe(false)
    },
  )

  it('reads the status of got and undici too', () => {
    expect(isDefinite({ statusCode: 201 })).toBe(true)
    expect(isDefinite({ statusCode: 503 })).toBe(false)
    expect(isDefinite({ status: 'done', statusCode: 201 })).toBe(true)
    expect(isDefinite({ status: 503, statusCode: 201 })).toBe(false)
  })

  it('asks the caller, where the caller knows better', async () => {
    const { kept, storage } = inMemory()
    const keeper = intents({ storage })
    await keeper.run('checkout', cart, answers(409), ({ status }) => status === 409)
    expect(kept.size).toBe(0)
    await keeper.run('checkout', cart, answers(201), () => false)
    expect(kept.size).toBe(1)
  })
})
