import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../../test/property.js'
import { type Key, mintKey, type StoredKey, scope } from '../../identity/index.js'
import { memory } from '../../stores/memory/index.js'
import { fail, operationId, type ValueCodec } from '../index.js'
import { encrypted, encryptedMessages } from './encrypted.js'
import { parseJson, printJson } from './json.js'

interface Order {
  readonly key: Key
}

const shop = scope('shop')
const identity = { scope: () => shop, key: (order: Order) => order.key, window: '24h' } as const
const keyOf = (byte: number) => new Uint8Array(32).fill(byte)

function world() {
  const db = memory({ name: 'shop' })
  const { committed } = db.records as unknown as { committed: Map<StoredKey, { value: string; codec: string }> }
  const nameOf = (order: Order, name = 'pay') => operationId(name, shop, order.key)
  return { db, committed, nameOf, stored: (order: Order) => committed.get(nameOf(order)) }
}

describe('a codec of references', () => {
  interface Invoice {
    readonly id: string
    readonly total: number
  }

  it('stores an id, and every caller gets the thing itself', async () => {
    const { db, stored } = world()
    db.table('invoice', { unique: [['id']] })
    const references: ValueCodec<Invoice> = {
      name: 'invoice-1',
      encode: ({ id }) => id,
      decode: async (id) => {
        const row = await db.transact((tx) => tx.readRow('invoice', { id }), { readOnly: true })
        if (row === undefined) throw new Error('gone')
        return { id, total: Number(row['total']) }
      },
    }
    let runs = 0
    const invoice = db.operation('pay', {
      ...identity,
      codec: references,
      failures: ['empty'],
      run: async (tx, { key }: Order) => {
        runs += 1
        if (key.startsWith('empty')) return fail('empty')
        await tx.insertOnce('invoice', { id: 'i-7', total: 12 }, ['id'])
        return { id: 'i-7', total: 12 }
      },
    })
    const order = { key: mintKey() }
    expect(await invoice(order)).toEqual({ id: 'i-7', total: 12 })
    expect(stored(order)).toMatchObject({ codec: 'invoice-1', value: 'i-7' })
    // It may reflect what became of the thing meanwhile.
    await db.transact((tx) => tx.updateRows('invoice', { id: 'i-7' }, { total: 15 }))
    expect(await invoice(order)).toEqual({ id: 'i-7', total: 15 })
    await db.transact((tx) => tx.updateRows('invoice', { id: 'i-7' }, { id: 'i-8' }))
    await expect(invoice(order)).rejects.toMatchObject({ code: 'OUTCOME_UNREADABLE', cause: new Error('gone') })
    expect(runs).toBe(1)
    // A failure is none of its values: it stays JSON.
    const empty = { key: 'empty' as Key }
    expect(await invoice.outcome(empty)).toMatchObject({ failure: { code: 'empty' }, replayed: false })
    expect(stored(empty)).toMatchObject({ codec: undefined, value: '{"code":"empty"}' })
    expect(await invoice.outcome(empty)).toMatchObject({ failure: { code: 'empty' }, replayed: true })
  })
})

describe('encrypted outcomes', () => {
  const secret = { card: 'ends in 4242' }
  const run = (_tx: unknown, { key }: Order) => (key.startsWith('no') ? fail('no', secret) : secret)

  it('cannot be read in the store, and are read by whoever has the key; failures too', async () => {
    const { db, stored } = world()
    const codec = encrypted<typeof secret>({ keys: { k1: keyOf(1) }, current: 'k1' })
    const pay = db.operation('pay', { ...identity, codec, failures: ['no'], run })
    const [order, refused] = [{ key: mintKey() }, { key: 'no-1' as Key }]
    for (let call = 0; call < 2; call++) {
      expect(await pay(order)).toEqual(secret)
      expect(await pay.outcome(refused)).toMatchObject({ outcome: 'failed', failure: { code: 'no', data: secret } })
    }
    for (const one of [order, refused]) {
      expect(stored(one)?.codec).toBe('aes-256-gcm-1')
      expect(stored(one)?.value).toMatch(/^k1\.[A-Za-z0-9_-]{40,}$/)
      expect(Buffer.from(stored(one)?.value.slice(3) ?? '', 'base64url').toString('latin1')).not.toContain('4242')
    }
  })

  it('are read after a rotation as long as the old key is at hand', async () => {
    const { db, committed } = world()
    const first = encrypted<typeof secret>({ keys: { k1: keyOf(1) }, current: 'k1' })
    const order = { key: mintKey() }
    await db.operation('pay', { ...identity, codec: first, failures: ['no'], run })(order)
    const later = (keys: Record<string, Uint8Array>) => {
      const next = memory({ name: 'later' })
      Object.assign(next.records, { committed })
      const codec = encrypted<typeof secret>({ keys, current: 'k2' })
      return next.operation('pay', {
        ...identity,
        codec,
        failures: ['no'],
        run: (): typeof secret => expect.unreachable('again'),
      })
    }
    expect(await later({ k1: keyOf(1), k2: keyOf(2) })(order)).toEqual(secret)
    await expect(later({ k2: keyOf(2) })(order)).rejects.toMatchObject({ code: 'OUTCOME_UNREADABLE' })
    await expect(later({ k1: keyOf(3), k2: keyOf(2) })(order)).rejects.toMatchObject({ code: 'OUTCOME_UNREADABLE' })
  })

  it('that are swapped between records, or changed, are unreadable, and nothing runs again', async () => {
    const { db, committed, nameOf } = world()
    let runs = 0
    const codec = encrypted<number>({ keys: { k1: keyOf(1) }, current: 'k1' })
    const pay = db.operation('pay', {
      ...identity,
      codec,
      run: (_tx, _order: Order) => {
        runs += 1
        return runs
      },
    })
    const [one, two] = [{ key: mintKey() }, { key: mintKey() }]
    await pay(one)
    await pay(two)
    const [first, second] = [committed.get(nameOf(one)), committed.get(nameOf(two))]
    if (first === undefined || second === undefined) return expect.unreachable('both are stored')
    committed.set(nameOf(one), { ...first, value: second.value })
    committed.set(nameOf(two), { ...second, value: `${second.value.slice(0, -2)}AA` })
    await expect(pay(one)).rejects.toMatchObject({ code: 'OUTCOME_UNREADABLE' })
    await expect(pay(two)).rejects.toMatchObject({ code: 'OUTCOME_UNREADABLE' })
    expect(runs).toBe(2)
  })

  const context = { id: 'record' as StoredKey, operation: 'pay' }
  const codec = encrypted({ keys: { k1: keyOf(1) }, current: 'k1' })

  property(
    'come back as they were, and never twice as the same text',
    [fc.jsonValue()],
    async (value) => {
      const text = await codec.encode(value, context)
      expect(await codec.encode(value, context)).not.toBe(text)
      expect(await codec.decode(text, context)).toEqual(JSON.parse(JSON.stringify(value)))
    },
    { cases: 500 },
  )

  it.each(['', 'k1', 'k1.', 'k1.AAAA', '.', 'k9.AAAA'])('refuse the text %j', async (text) => {
    await expect(async () => codec.decode(text, context)).rejects.toThrow()
  })

  it.each([
    { keys: {}, current: 'k1' },
    { keys: { k1: new Uint8Array(16) }, current: 'k1' },
    { keys: { k1: keyOf(1) }, current: 'k2' },
    { keys: { 'k.1': keyOf(1) }, current: 'k.1' },
    { keys: undefined as never, current: 'k1' },
  ])('refuse keys that are none, case %#', (options) => {
    expect(() => encrypted(options)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
  })
})

describe('encrypted messages', () => {
  const message = (id: string, key = 'customer/7') => ({ source: '/shop', id, type: 'placed', subject: 'order/1', key })
  const secrets = new Map([
    ['customer/7', keyOf(1)],
    ['customer/8', keyOf(2)],
    ['order/1', keyOf(3)],
  ])
  const codec = encryptedMessages({ keyFor: (key) => secrets.get(key) })

  it('are read by whoever has the secret of their key, and erased where it is deleted', () => {
    const db = memory({ name: 'shop', messages: { codec } })
    const gone = new Map(secrets)
    const reader = encryptedMessages({ keyFor: (key) => gone.get(key) })
    const [seven, eight] = [message('a'), message('b', 'customer/8')]
    const texts = [seven, eight].map((one) => codec.encode('{"card":4242}', one))
    expect(texts.join()).not.toContain('4242')
    gone.delete('customer/7')
    expect([seven, eight].map((one, place) => reader.decode(texts[place] ?? '', one))).toEqual([
      undefined,
      '{"card":4242}',
    ])
    return expect(db.transact((tx) => tx.emit({ type: 'placed', key: 'customer/9', data: 1 }))).rejects.toMatchObject({
      code: 'MESSAGE_INVALID',
      details: { field: 'key' },
    })
  })

  it('are bound to their message', () => {
    const text = codec.encode('1', message('a'))
    expect(codec.decode(text, message('a'))).toBe('1')
    expect(() => codec.decode(text, message('b'))).toThrow()
    expect(() => codec.decode(text, { ...message('a'), source: '/other' })).toThrow()
    expect(() => codec.decode(text, message('a', 'customer/8'))).toThrow()
  })

  it('that are delayed have the secret of their subject', () => {
    const asked: string[] = []
    const noted = encryptedMessages({
      keyFor: (key) => {
        asked.push(key)
        return keyOf(1)
      },
    })
    noted.encode('1', message('a', 'reprise:a'))
    noted.encode('1', { ...message('a', 'reprise:a'), subject: undefined })
    noted.encode('1', message('a', 'reprise:b'))
    expect(asked).toEqual(['order/1', 'reprise:a', 'reprise:b'])
  })

  it('need secrets of 32 bytes, and a function', () => {
    const short = encryptedMessages({ keyFor: () => new Uint8Array(16) })
    expect(() => short.encode('1', message('a'))).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
    expect(() => encryptedMessages({} as never)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
  })
})

describe('earlier codecs', () => {
  it('read what they wrote; without them it is unreadable, and nothing runs again', async () => {
    const { db, committed } = world()
    const old: ValueCodec<string> = { name: 'rot-1', encode: (text) => `x${text}`, decode: (text) => text.slice(1) }
    const order = { key: mintKey() }
    await db.operation('pay', { ...identity, codec: old, run: () => 'done' })(order)
    const later = (earlierCodecs: readonly ValueCodec<string>[]) => {
      const next = memory({ name: 'later' })
      Object.assign(next.records, { committed })
      return next.operation('pay', { ...identity, earlierCodecs, run: (): string => expect.unreachable('again') })
    }
    expect(await later([old])(order)).toBe('done')
    await expect(later([])(order)).rejects.toMatchObject({ code: 'OUTCOME_UNREADABLE', details: { codec: 'rot-1' } })
  })
})

describe('large outcomes', () => {
  it.each([
    ['a result', 'x'.repeat(100)],
    ['a failure', fail('large', 'x'.repeat(100))],
    ['text of more bytes than units', 'é'.repeat(60)],
  ])('%s: the first caller gets all of it, a repeat is refused, nothing runs again', async (_title, value) => {
    const { db, stored } = world()
    let runs = 0
    const pay = db.operation('pay', {
      ...identity,
      failures: ['large'],
      largestOutcome: 101,
      run: (_tx, _order: Order) => {
        runs += 1
        return value
      },
    })
    const order = { key: mintKey() }
    const first = await pay.outcome(order)
    expect(first.outcome === 'succeeded' ? first.value : first.failure).toEqual(value)
    expect(stored(order)).toMatchObject({ codec: 'tombstone', value: undefined })
    for (let call = 0; call < 2; call++) {
      await expect(pay(order)).rejects.toMatchObject({ code: 'OUTCOME_TOO_LARGE' })
    }
    expect(runs).toBe(1)
  })

  it('are those above the limit, to the byte', async () => {
    const { db, stored } = world()
    const run = (_tx: unknown, { key }: Order) => 'x'.repeat(key.length)
    const pay = db.operation('pay', { ...identity, largestOutcome: 22, run })
    const [fits, large] = [{ key: 'k'.repeat(20) as Key }, { key: 'k'.repeat(21) as Key }]
    await pay(fits)
    await pay(large)
    expect([stored(fits)?.codec, stored(large)?.codec]).toEqual([undefined, 'tombstone'])
  })
})

it('refuses a result that JSON would not give back, before anything is stored', async () => {
  const { db, stored } = world()
  const values = [2n ** 70n, Number.NaN, new Map(), { '10': 1, '9': 2, a: 2n ** 70n }]
  let result: unknown
  const pay = db.operation('pay', { ...identity, run: () => result })
  const order = { key: mintKey() }
  for (result of values) {
    await expect(pay(order)).rejects.toMatchObject({ code: 'JSON_VALUE_UNSUPPORTED' })
    expect(stored(order)).toBeUndefined()
  }
  result = { '10': 1, '9': 2, a: 'names like numbers have an order of their own' }
  expect(await pay(order)).toEqual(result)
})

property('JSON comes back as it was printed, and prints the same again', [fc.jsonValue()], (value) => {
  const text = printJson(value, 1e6)
  expect(text).toBeDefined()
  const parsed = parseJson(text ?? '')
  expect(parsed).toEqual(JSON.parse(JSON.stringify(value)))
  expect(printJson(parsed, 1e6)).toBe(text)
  expect(printJson(value, Buffer.byteLength(text ?? '') - 1)).toBeUndefined()
})
