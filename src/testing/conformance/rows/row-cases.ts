// What every store must do with repeatable writes; each case tells apart what "0 rows" means.

import type { Match, Row } from '../../../atomicity/index.js'
import type { Domain } from '../../../transaction/index.js'
import type { ConformanceCase, ConformanceHandle } from '../conformance-case.js'
import { failing, holds, same } from '../expectations.js'
import { gate } from '../gate.js'
import { overlapOf, race } from '../race.js'
import { rowArgumentCases } from './argument-cases.js'

type Db = Domain<ConformanceHandle>

/**
 * Two transactions that write at the same time. If the store runs them in parallel, both are open before either writes.
 */
async function raceOfTwo<Result>(
  first: Db,
  second: Db,
  write: (tx: ConformanceHandle, number: number) => Promise<Result>,
): Promise<readonly Result[]> {
  const options = { lockWait: '30s', connectionWait: '30s' } as const
  const { results } = await race(
    2,
    ({ number, call, body, meet }) => {
      const work = (tx: ConformanceHandle): Promise<Result> => body(() => meet().then(() => write(tx, number)))
      return call(() => (number === 0 ? first : second).transact(work, options))
    },
    overlapOf(first.manifest),
  )
  return results
}

/** Cases of the group `store.rows`. */
export const rowCases: readonly ConformanceCase[] = [
  {
    id: 'store.rows.01',
    title: 'MUST insert once, and hand out the row that is there to a repeat',
    async run({ db, item }) {
      const insert = (amount: number): Promise<[boolean, number]> =>
        db.transact(async (tx) => {
          const { inserted, row } = await tx.insertOnce('items', { id: 'x', amount }, ['id'])
          return [inserted, Number(row['amount'])]
        })
      same(
        [await insert(1), await insert(2)],
        [
          [true, 1],
          [false, 1],
        ],
        'first and repeat',
      )
      same(Number((await item('x'))?.['amount']), 1, 'amount')
    },
  },
  {
    id: 'store.rows.02',
    title: 'MUST let the unique index decide a race of inserts',
    async run({ db, second, item }) {
      const inserted = await raceOfTwo(db, await second(), async (tx, number) => {
        return (await tx.insertOnce('items', { id: 'x', amount: number }, ['id'])).inserted
      })
      same(inserted.filter(Boolean).length, 1, 'who inserted')
      same((await item('x')) !== undefined, true, 'the row is there')
    },
  },
  {
    id: 'store.rows.03',
    title: 'MUST go on in the same transaction after an insert that was a repeat',
    async run({ db, putItem, effect, effectsOf }) {
      await putItem({ id: 'x' })
      await db.transact(async (tx) => {
        await tx.insertOnce('items', { id: 'x' }, ['id'])
        await effect(tx, 'a')
      })
      same(await effectsOf('a'), 1, 'effects')
    },
  },
  {
    id: 'store.rows.04',
    title: 'MUST refuse a natural key that holds NULL or is not part of the row, before anything is written',
    async run({ db, effectsOf }) {
      await failing(
        db.transact((tx) => tx.insertOnce('items', { id: null }, ['id'])),
        'ARGUMENT_INVALID',
      )
      await failing(
        db.transact((tx) => tx.insertOnce('items', { amount: 1 }, ['id'])),
        'ARGUMENT_INVALID',
      )
      same(await effectsOf('a'), 0, 'effects')
    },
  },
  {
    id: 'store.rows.05',
    title: 'MUST tell the four ends of a transition apart',
    async run({ db, putItem, item }) {
      await putItem({ id: 'x', state: 'new' })
      const move = (id: string, from: string, to: string, command: string): Promise<unknown> =>
        db.transact((tx) => tx.transition('items', { where: { id }, from, to, command }))
      same(await move('x', 'new', 'paid', 'c1'), { result: 'applied' }, 'the first')
      same(await move('x', 'new', 'paid', 'c1'), { result: 'already-applied' }, 'its repeat')
      same(await move('x', 'new', 'paid', 'c2'), { result: 'invalid', state: 'paid' }, 'another command')
      same(await move('x', 'paid', 'sent', 'c1'), { result: 'invalid', state: 'paid' }, 'the first, with another end')
      same(await move('y', 'new', 'paid', 'c3'), { result: 'absent' }, 'no such row')
      same((await item('x'))?.['state'], 'paid', 'the state')
      same((await item('x'))?.['last_command'], 'c1', 'the last command')
    },
  },
  {
    id: 'store.rows.06',
    title: 'MUST apply one of two commands that want the same transition at once',
    async run({ db, second, putItem }) {
      await putItem({ id: 'x', state: 'new' })
      const ends = await raceOfTwo(db, await second(), (tx, number) =>
        tx.transition('items', { where: { id: 'x' }, from: 'new', to: 'paid', command: `c${number}` }),
      )
      same(ends.map(({ result }) => result).toSorted(), ['applied', 'invalid'], 'results')
    },
  },
  {
    id: 'store.rows.07',
    title: 'MUST lock a row, and say undefined where there is none',
    async run({ db, putItem }) {
      await putItem({ id: 'x', amount: 3 })
      const read = await db.transact(async (tx) => [
        Number((await tx.lockRow('items', { id: 'x' }))?.['amount']),
        (await tx.lockRow('items', { id: 'y' })) === undefined,
      ])
      same(read, [3, true], 'what was locked')
    },
  },
  {
    id: 'store.rows.08',
    title: 'MUST fail with LOCK_TIMEOUT when somebody else holds the row, at once under nowait',
    deniedBy: ({ rowLock, because }) =>
      rowLock === 'row' ? undefined : (because.rowLock ?? 'the whole store is locked'),
    async run({ db, second, putItem }) {
      await putItem({ id: 'x' })
      const inside = gate(2)
      const holder = (await second()).transact(async (tx) => {
        await tx.lockRow('items', { id: 'x' })
        await inside.arrive()
      })
      await inside.waiting(1)
      for (const wait of ['nowait', '30ms'] as const) {
        await failing(
          db.transact((tx) => tx.lockRow('items', { id: 'x' }, { wait }), { attempts: 1 }),
          'LOCK_TIMEOUT',
        )
      }
      await inside.arrive()
      await holder
    },
    async refusal({ db, second, putItem }) {
      await putItem({ id: 'x' })
      const inside = gate(2)
      const holder = db.transact(async (tx) => {
        await tx.lockRow('items', { id: 'x' })
        await inside.arrive()
      })
      await inside.waiting(1)
      await failing(
        (await second()).transact((tx) => tx.lockRow('items', { id: 'x' }), { connectionWait: '50ms', attempts: 1 }),
      )
      await inside.arrive()
      await holder
    },
  },
  {
    id: 'store.rows.09',
    title: 'MUST update optimistically: decide again after a mismatch, so that no change is lost',
    async run({ db, second, putItem, item }) {
      const domains = [db, await second()]
      const [racers, most] = [8, 20]
      let [mismatches, heats] = [0, 0]
      // Where writers run in parallel, this is repeated until somebody was too late at least once.
      for (; heats === 0 || (mismatches === 0 && overlapOf(db.manifest) === 'bodies' && heats < most); heats++) {
        const id = `heat-${heats}`
        await putItem({ id, amount: 0 })
        const decide = (row: Row): Match => ({ amount: Number(row['amount']) + 1 })
        const update = { table: 'items', where: { id }, rounds: 50, decide }
        const { results } = await race(racers, ({ number, call }) =>
          call(() => (domains[number % 2] ?? db).optimistic(update, { connectionWait: '30s', lockWait: '30s' })),
        )
        mismatches += results.filter((ended) => ended.result === 'written' && ended.rounds > 1).length
        const row = await item(id)
        same([Number(row?.['amount']), Number(row?.['version'])], [racers, racers], 'sum and version')
      }
      holds(overlapOf(db.manifest) === 'calls' || mismatches > 0, 'that somebody had to decide again')
    },
  },
  {
    id: 'store.rows.10',
    title: 'MUST tell an optimistic update that changed nothing from one that found nothing',
    async run({ db, putItem }) {
      await putItem({ id: 'x', amount: 5 })
      const update = { table: 'items', decide: () => undefined }
      const [there, gone] = [
        await db.optimistic({ ...update, where: { id: 'x' } }),
        await db.optimistic({ ...update, where: { id: 'y' } }),
      ]
      same([there.result, gone.result], ['unchanged', 'absent'], 'results')
    },
  },
  ...rowArgumentCases,
  {
    id: 'store.rows.19',
    title: 'MUST remember every command in a table of commands, and let the version grow with each transition',
    async run({ db, putItem, item }) {
      await putItem({ id: 'x', state: 'new' })
      const move = (from: string, to: string, command: string, id = 'x'): Promise<unknown> =>
        db.transact((tx) =>
          tx.transition('items', { where: { id }, from, to, command, commands: 'commands', versionColumn: 'version' }),
        )
      same(await move('paid', 'sent', 'e2'), { result: 'invalid', state: 'new' }, 'a command that comes too early')
      same(await move('new', 'paid', 'e1'), { result: 'applied' }, 'the first')
      same(await move('paid', 'sent', 'e2'), { result: 'applied' }, 'the second, which was refused before')
      same(await move('new', 'paid', 'e1'), { result: 'already-applied' }, 'the first again, after the second')
      same(await move('sent', 'lost', 'e1'), { result: 'invalid', state: 'sent' }, 'the first, with another end')
      same(await move('new', 'paid', 'e1', 'y'), { result: 'absent' }, 'the first, for another row')
      same([(await item('x'))?.['state'], Number((await item('x'))?.['version'])], ['sent', 2], 'state and version')
    },
  },
  {
    id: 'store.rows.20',
    title: 'MUST apply a command once that two transactions carry out at the same time',
    async run({ db, second, putItem, item }) {
      await putItem({ id: 'x', state: 'on' })
      const again = { from: 'on', to: 'on', command: 'e1', commands: 'commands', versionColumn: 'version' }
      const ends = await raceOfTwo(db, await second(), (tx) => tx.transition('items', { where: { id: 'x' }, ...again }))
      same(ends.map(({ result }) => result).toSorted(), ['already-applied', 'applied'], 'results')
      same(Number((await item('x'))?.['version']), 1, 'the version')
    },
  },
  {
    id: 'store.rows.21',
    title: 'MUST set a row to what is given, there or not, and add a member to a set once, both reported as algebra',
    async run({ db, item }) {
      const set = (amount: number): Promise<unknown> =>
        db.transact((tx) => tx.upsert('items', { id: 'x', amount }, ['id']))
      same(
        [await set(1), await set(2), await set(2)],
        [{ rung: 'algebra' }, { rung: 'algebra' }, { rung: 'algebra' }],
        'sets',
      )
      same(Number((await item('x'))?.['amount']), 2, 'amount')
      const add = (id: string): Promise<unknown> => db.transact((tx) => tx.addToSet('items', { id }))
      same(
        [await add('y'), await add('y'), await add('x')],
        [
          { rung: 'algebra', added: true },
          { rung: 'algebra', added: false },
          { rung: 'algebra', added: false },
        ],
        'members',
      )
      same(Number((await item('x'))?.['amount']), 2, 'amount of what was a member')
    },
  },
  {
    id: 'store.rows.22',
    title: 'MUST let two transactions set one row at the same time: both succeed, and the row is what one of them set',
    async run({ db, second, item }) {
      await raceOfTwo(db, await second(), (tx, number) => tx.upsert('items', { id: 'x', amount: number + 1 }, ['id']))
      holds([1, 2].includes(Number((await item('x'))?.['amount'])), 'that the row is what one of them set')
    },
  },
]
