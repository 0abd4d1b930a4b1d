import { describe, expect, expectTypeOf, it } from 'vitest'
import { memory } from '../stores/memory/index.js'
import type { ProducerRow } from './rule.js'
import { type Accepted, sequencesOf } from './sequence.js'
import type { SequenceStore } from './store.js'

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
  return sequencesOf(store, (body) => body({}), undefined).sequence('orders')
}

const at = { producer: 'till', epoch: 7, number: 2 }
const row: ProducerRow = { epoch: 7, number: 1, fingerprint: undefined, value: undefined }

describe('accept', () => {
  it('tries again where the number became the next one between two statements', async () => {
    expect(await scripted([row], [false, true]).accept({}, at, () => 'done')).toEqual({ result: 'new', value: 'done' })
    const restless = scripted([row, row, row, row, row])
    await expect(restless.accept({}, at)).rejects.toMatchObject({ code: 'ROW_UNSETTLED', details: { rounds: 4 } })
  })

  it('says in details what is known, and never what was sent', async () => {
    const refused = (known: ProducerRow | undefined) => scripted([known]).accept({}, { ...at, number: 5 })
    await expect(refused(row)).rejects.toMatchObject({
      code: 'SEQUENCE_GAP',
      details: { epoch: 7, number: 5, next: 2 },
    })
    await expect(refused({ ...row, epoch: 9 })).rejects.toMatchObject({ details: { epoch: 7, number: 5, open: 9 } })
    const unknown = await refused(undefined).catch((error: Error) => error)
    expect(unknown).toMatchObject({ code: 'SEQUENCE_FENCED', details: { epoch: 7, number: 5 } })
    expect(String(unknown)).not.toContain('till')
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

describe('purge', () => {
  it('goes on while a batch is full', async () => {
    const given = [500, 500, 3]
    const store = { forget: async () => given.shift() ?? 0 } as unknown as SequenceStore<object>
    expect(
      await sequencesOf(store, (body) => body({}), undefined)
        .sequence('orders')
        .purge({ idle: '1d' }),
    ).toBe(1_003)
  })
})
