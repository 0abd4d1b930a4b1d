import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { describe, expect, expectTypeOf, it, onTestFinished } from 'vitest'
import { TransactionHandle } from '../atomicity/index.js'
import { deadlineAfter } from '../kernel/index.js'
import { memory } from '../stores/memory/index.js'
import { sequenceRefused } from '../telemetry/index.js'
import type { ProducerRow } from './rule.js'
import { type Accepted, sequencesOf } from './sequence.js'
import type { SequenceStore } from './store.js'

const engine = { name: 'scripted' }
const controls = {
  engine,
  attempt: 1,
  deadline: deadlineAfter('1m'),
  signal: new AbortController().signal,
  afterCommit: () => undefined,
}
const unused = (): never => expect.unreachable()
const tx = new TransactionHandle(controls, { call: async (work) => work() }, unused, { emit: unused })

// A store that says what it is told to, one answer after the other.
function scripted(rows: readonly (ProducerRow | undefined)[], advances: readonly boolean[] = []) {
  const [left, asked] = [[...rows], [...advances]]
  const store: SequenceStore<object> = {
    open: async () => 7,
    advance: async () => asked.shift() ?? false,
    read: async () => left.shift(),
    keep: async () => undefined,
    forget: async () => 0,
  }
  return sequencesOf<object>(engine, store, async (body) => body(tx), undefined).sequence('orders')
}

const at = { producer: 'till', epoch: 7, number: 2 }
const row: ProducerRow = { epoch: 7, number: 1, fingerprint: undefined, value: undefined }

describe('accept', () => {
  it('tries again where the number became the next one between two statements', async () => {
    expect(await scripted([row], [false, true]).accept(tx, at, () => 'done')).toEqual({ result: 'new', value: 'done' })
    const restless = scripted([row, row, row, row, row])
    await expect(restless.accept(tx, at)).rejects.toMatchObject({ code: 'ROW_UNSETTLED', details: { rounds: 4 } })
  })

  it('says in details what is known, and never what was sent', async () => {
    const refused = (known: ProducerRow | undefined) => scripted([known]).accept(tx, { ...at, number: 5 })
    await expect(refused(row)).rejects.toMatchObject({
      code: 'SEQUENCE_GAP',
      details: { epoch: 7, number: 5, next: 2 },
    })
    await expect(refused({ ...row, epoch: 9 })).rejects.toMatchObject({ details: { epoch: 7, number: 5, open: 9 } })
    const unknown = await refused(undefined).catch((error: Error) => error)
    expect(unknown).toMatchObject({ code: 'SEQUENCE_FENCED', details: { epoch: 7, number: 5 } })
    expect(String(unknown)).not.toContain('till')
  })

  it('tells what it refuses on a channel, and why', async () => {
    const told: unknown[] = []
    const listener = (message: unknown): void => void told.push(message)
    subscribe(sequenceRefused.name, listener)
    onTestFinished(() => void unsubscribe(sequenceRefused.name, listener))
    const content = { value: 'tea' }
    const last = { ...row, number: 2, fingerprint: `json1-sha256:${'A'.repeat(43)}` }
    for (const known of [undefined, { ...row, epoch: 9 }, { ...row, number: 0 }, last]) {
      await expect(scripted([known]).accept(tx, { ...at, content })).rejects.toThrow()
    }
    const about = { domain: 'scripted', sequence: 'orders', epoch: 7, number: 2 }
    expect(told).toEqual([
      { ...about, because: 'fenced' },
      { ...about, because: 'fenced', open: 9 },
      { ...about, because: 'gap', next: 1 },
      { ...about, because: 'mismatch' },
    ])
    await scripted([], [true]).accept(tx, at)
    expect(told).toHaveLength(4)
  })

  it.each(['', 'x', null, 0, false])(
    'takes %j for no content, and refuses it before anything is written',
    async (content) => {
      const db = memory({ name: 'contents' })
      const orders = db.sequence('orders')
      const first = { producer: 'till', epoch: await orders.open('till'), number: 1 }
      const accepting = db.transact((handle) => orders.accept(handle, { ...first, content: content as never }))
      await expect(accepting).rejects.toMatchObject({ code: expect.stringMatching(/_INVALID$/) })
      expect(db.rows('reprise_sequence')).toMatchObject([{ number: 0 }])
    },
  )

  it('compares empty content like any other', async () => {
    const db = memory({ name: 'empty' })
    const orders = db.sequence('orders')
    const first = { producer: 'till', epoch: await orders.open('till'), number: 1 }
    const accepting = (value: unknown) =>
      db.transact((handle) => orders.accept(handle, { ...first, content: { value } })).then(({ result }) => result)
    expect([await accepting(''), await accepting('')]).toEqual(['new', 'duplicate'])
    await expect(accepting('x')).rejects.toMatchObject({ code: 'SEQUENCE_MISMATCH' })
  })

  it('refuses the handle of another domain of the same name, and writes to neither', async () => {
    const [own, other] = [memory({ name: 'shop' }), memory({ name: 'shop' })]
    const [mine, theirs] = [own.sequence('orders'), other.sequence('orders')]
    const epochs = [await mine.open('till'), await theirs.open('till')]
    // The same producer has the same epoch in both: the number would be the next one in either.
    expect(new Set(epochs).size).toBe(1)
    const first = { producer: 'till', epoch: epochs[0] as number, number: 1 }
    const refused = { code: 'ARGUMENT_INVALID', details: { domain: 'shop' } }
    await expect(other.transact((handle) => mine.accept(handle, first))).rejects.toMatchObject(refused)
    for (const none of [undefined, null, 'tx', {}, { query: () => expect.unreachable() }]) {
      await expect(mine.accept(none as never, first)).rejects.toMatchObject(refused)
    }
    for (const db of [own, other]) expect(db.rows('reprise_sequence')).toMatchObject([{ number: 0 }])
  })

  it('has the type of what its function returns', async () => {
    const db = memory({ name: 'typed' })
    const orders = db.sequence('orders')
    const first = { producer: 'till', epoch: await orders.open('till'), number: 1 }
    await db.transact(async (tx) => {
      const accepted = await orders.accept(tx, first, async () => ({ id: 1 }))
      expectTypeOf(accepted).toEqualTypeOf<Accepted<{ id: number }>>()
      if (accepted.result === 'duplicate' && !accepted.kept) expectTypeOf(accepted.value).toEqualTypeOf<undefined>()
      else expectTypeOf(accepted.value).toEqualTypeOf<{ id: number }>()
    })
  })
})

describe('under a pepper', () => {
  it('fingerprints are hidden, and those of an earlier pepper are still known', async () => {
    const [first, second] = ['the-first-secret-of-us', 'the-second-secret-of-us']
    const content = { value: { amount: 5 } }
    const stored: string[] = []
    for (const pepper of [undefined, first, [first, second]]) {
      const db = memory({ name: 'hidden', ...(pepper !== undefined && { pepper }) })
      const orders = db.sequence('orders')
      const place = { producer: 'till', epoch: await orders.open('till'), number: 1, content }
      await db.transact((tx) => orders.accept(tx, place))
      stored.push(String(db.rows('reprise_sequence')[0]?.['fingerprint']))
      // What others stored before, under an earlier pepper or none.
      for (const fingerprint of stored) {
        await db.transact((tx) => tx.updateRows('reprise_sequence', { producer: 'till' }, { fingerprint }))
        expect((await db.transact((tx) => orders.accept(tx, place))).result).toBe('duplicate')
        const other = db.transact((tx) => orders.accept(tx, { ...place, content: { value: { amount: 6 } } }))
        await expect(other).rejects.toMatchObject({ code: 'SEQUENCE_MISMATCH' })
      }
    }
    expect(stored[0]).toMatch(/^json1-sha256:/)
    expect(stored[1]).toMatch(/^json1-hmac256-[0-9a-f]{8}:/)
    expect(new Set(stored).size).toBe(3)
  })
})

describe('a name', () => {
  it.each(['', 'a\0b', 'a\nb', '\u0085', '\ud800', 'x'.repeat(256), 5, undefined])('cannot be %j', (name) => {
    const db = memory({ name: 'named' })
    expect(() => db.sequence(name as string)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
  })

  it.each(['a\0b', 'a b', 'ä', ''])('of a producer cannot be %j, wherever it is given', async (producer) => {
    const db = memory({ name: 'named' })
    const orders = db.sequence('bestellungen für 😀')
    const refused = { code: 'ARGUMENT_INVALID' }
    await expect(orders.open(producer)).rejects.toMatchObject(refused)
    await expect(
      db.transact((handle) => orders.accept(handle, { producer, epoch: 1, number: 1 })),
    ).rejects.toMatchObject(refused)
    expect(db.rows('reprise_sequence')).toEqual([])
  })
})

describe('purge', () => {
  it('goes on while a batch is full', async () => {
    const given = [500, 500, 3]
    const store = { forget: async () => given.shift() ?? 0 } as unknown as SequenceStore<object>
    expect(
      await sequencesOf<object>(engine, store, (body) => body(tx), undefined)
        .sequence('orders')
        .purge({ idle: '1d' }),
    ).toBe(1_003)
  })
})
