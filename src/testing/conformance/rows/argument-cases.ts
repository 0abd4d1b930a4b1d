// What every store must do with invalid arguments: refuse them all alike before anything is sent, so that the
// transaction can go on.

import { statSync } from 'node:fs'
import type { Rows } from '../../../atomicity/index.js'
import type { ConformanceCase, ConformanceHandle, StoreWorld } from '../conformance-case.js'
import { failing, holds, same } from '../expectations.js'

/** The row functions, with arguments that their types forbid. */
type OddRows = { readonly [Name in keyof Rows]: (...values: readonly unknown[]) => Promise<unknown> }

type OddCall = readonly [what: string, call: (tx: OddRows) => Promise<unknown>]

/** The members of an item, without what drivers add to them. */
async function contents({ item }: StoreWorld): Promise<readonly unknown[]> {
  const row = await item('x')
  return ['state', 'last_command', 'version', 'token', 'amount'].map((column) => String(row?.[column]))
}

/**
 * Makes every call in one transaction. Each must be refused with the code, and an effect committed after them shows
 * that nothing was sent.
 */
async function refuseAll(world: StoreWorld, calls: readonly OddCall[], code = 'ARGUMENT_INVALID'): Promise<void> {
  const { db, effect, effectsOf, putItem } = world
  await putItem({ id: 'x', state: 'new', amount: 1 })
  const before = await contents(world)
  await db.transact(async (tx: ConformanceHandle) => {
    for (const [what, call] of calls) {
      const error = (await failing(call(tx as unknown as OddRows))) as { readonly code?: unknown }
      same([what, error.code], [what, code], 'the refusal')
    }
    await effect(tx, 'after')
  })
  same(await effectsOf('after'), 1, 'the effect after all refusals')
  same(await contents(world), before, 'the row')
}

/** Values that no column can store, with their names. */
const oddValues = (): readonly (readonly [what: string, value: unknown])[] => [
  ['undefined', undefined],
  ['a date', statSync('.').mtime],
  ['not a number', Number.NaN],
  ['a list', ['a']],
  ['an object', { a: 1 }],
  ['a function', () => 1],
  ['a symbol', Symbol('a')],
  ['half a surrogate pair', 'a\ud800'],
]

const x = { id: 'x' }
const pay = { where: x, from: 'new', to: 'paid', command: 'c1' }

/** Cases of the group `store.rows` about arguments. */
export const rowArgumentCases: readonly ConformanceCase[] = [
  {
    id: 'store.rows.11',
    title: 'MUST refuse values that no column holds, before anything is sent, and let the transaction go on',
    run: (world) =>
      refuseAll(
        world,
        oddValues().flatMap(([what, value]): readonly OddCall[] => [
          [`insertOnce of ${what}`, (tx) => tx.insertOnce('items', { id: 'y', state: value }, ['id'])],
          [`insertOnce by ${what}`, (tx) => tx.insertOnce('items', { id: value }, ['id'])],
          [`transition where ${what}`, (tx) => tx.transition('items', { ...pay, where: { id: value } })],
          [`transition that sets ${what}`, (tx) => tx.transition('items', { ...pay, set: { amount: value } })],
          [`lockRow where ${what}`, (tx) => tx.lockRow('items', { id: value })],
          [`readRow where ${what}`, (tx) => tx.readRow('items', { id: value })],
          [`updateRows where ${what}`, (tx) => tx.updateRows('items', { id: value }, { amount: 2 })],
          [`updateRows that sets ${what}`, (tx) => tx.updateRows('items', x, { amount: value })],
        ]),
      ),
  },
  {
    id: 'store.rows.12',
    title: 'MUST refuse a match that names no row for certain, and a write without columns',
    run: (world) =>
      refuseAll(world, [
        ...[{}, undefined, null, 'id', ['id']].flatMap((where): readonly OddCall[] => [
          [`transition ${typeof where}`, (tx) => tx.transition('items', { ...pay, where })],
          [`lockRow ${typeof where}`, (tx) => tx.lockRow('items', where)],
          [`readRow ${typeof where}`, (tx) => tx.readRow('items', where)],
          [`updateRows ${typeof where}`, (tx) => tx.updateRows('items', where, { amount: 2 })],
          [`updateRows that sets ${typeof where}`, (tx) => tx.updateRows('items', x, where)],
          [`insertOnce ${typeof where}`, (tx) => tx.insertOnce('items', where, ['id'])],
        ]),
        ...[undefined, null, {}, 'id', []].map(
          (by, place): OddCall => [`insertOnce by no. ${place}`, (tx) => tx.insertOnce('items', { id: 'y' }, by)],
        ),
        ['transition where null', (tx) => tx.transition('items', { ...pay, where: { id: null } })],
        ['lockRow where null', (tx) => tx.lockRow('items', { id: null })],
        ['insertOnce by a column twice', (tx) => tx.insertOnce('items', { id: 'y' }, ['id', 'id'])],
        ['insertOnce by a column that is no text', (tx) => tx.insertOnce('items', { id: 'y' }, [7])],
      ]),
  },
  {
    id: 'store.rows.13',
    title: 'MUST refuse a transition without a command, a start or an end, or with members that nobody knows',
    run: (world) =>
      refuseAll(
        world,
        [
          ...[undefined, null, '', 1.5, Number.NaN, {}, true].map((command) => ({ ...pay, command })),
          ...[undefined, null, 7, [], [null], ['new', 7]].map((from) => ({ ...pay, from })),
          ...[undefined, null, 7].map((to) => ({ ...pay, to })),
          ...['', 7, null].flatMap((column) => [
            { ...pay, column },
            { ...pay, commandColumn: column },
          ]),
          { ...pay, column: 'last_command' },
          { ...pay, set: { state: 'paid' } },
          { ...pay, set: { last_command: 'c2' } },
          { ...pay, set: 'amount' },
          { ...pay, comand: 'c1' },
          undefined,
          null,
          'paid',
        ].map((transition, place): OddCall => [`no. ${place}`, (tx) => tx.transition('items', transition)]),
      ),
  },
  {
    id: 'store.rows.14',
    title: 'MUST refuse odd waits for a lock with DURATION_INVALID, and other odd options with ARGUMENT_INVALID',
    async run(world) {
      const waits = [-1, Number.NaN, Number.POSITIVE_INFINITY, '', 'later', '1 week', null, true, {}]
      const lock = (options: unknown, place: number): OddCall => [
        `no. ${place}`,
        (tx) => tx.lockRow('items', x, options),
      ]
      await refuseAll(
        { ...world, effect: async () => undefined, effectsOf: async () => 1 },
        waits.map((wait, place) => lock({ wait }, place)),
        'DURATION_INVALID',
      )
      await refuseAll({ ...world, putItem: async () => undefined }, [null, 'nowait', 5, { wiat: 5 }].map(lock))
      const found = await world.db.transact((tx) => tx.lockRow('items', x, { wait: 'nowait' }))
      same(found?.['id'], 'x', 'a lock without a wait')
    },
  },
  {
    id: 'store.rows.15',
    title: 'MUST refuse what is no name of a table or a column',
    run: (world) =>
      refuseAll(world, [
        ...[
          undefined,
          null,
          '',
          7,
          'a.b.c',
          'a.',
          '.a',
          'a\0',
          'x'.repeat(64),
          {},
          { table: '' },
          { schema: '', table: 'a' },
        ].map((table, place): OddCall => [`table no. ${place}`, (tx) => tx.readRow(table, x)]),
        ...['', 'a\0', 'ä'.repeat(32)].flatMap((column): readonly OddCall[] => [
          ['a column to match', (tx) => tx.readRow('items', { ...x, [column]: 1 })],
          ['a column to set', (tx) => tx.updateRows('items', x, { [column]: 1 })],
          ['a column to insert', (tx) => tx.insertOnce('items', { id: 'y', [column]: 1 }, ['id'])],
        ]),
      ]),
  },
  {
    id: 'store.rows.16',
    title: 'MUST refuse a match of several rows where one is meant, and let a transaction that only read go on',
    async run(world) {
      await world.putItem({ id: 'y', state: 'new', amount: 1 })
      await refuseAll(world, [
        ['readRow', (tx) => tx.readRow('items', { state: 'new' })],
        ['lockRow', (tx) => tx.lockRow('items', { state: 'new' })],
      ])
      await failing(
        world.db.transact((tx) => tx.transition('items', { ...pay, where: { amount: 1 } })),
        'ARGUMENT_INVALID',
      )
      same([(await world.item('x'))?.['state'], (await world.item('y'))?.['state']], ['new', 'new'], 'the states')
    },
  },
  {
    id: 'store.rows.17',
    title: 'MUST refuse an optimistic update that decides later, or nothing that can be set, and write nothing',
    async run(world) {
      const { db, putItem } = world
      await putItem({ id: 'x', amount: 1 })
      const before = await contents(world)
      const update = { table: 'items', where: x }
      const decided: readonly (() => unknown)[] = [
        async () => ({ amount: 2 }),
        () => Promise.reject(new Error('later')),
        ...[null, 7, 'amount', [1], { amount: undefined }, { amount: statSync('.').mtime }].map(
          (changes) => () => changes,
        ),
      ]
      for (const decide of decided) {
        await failing(db.optimistic({ ...update, decide: decide as () => never }), 'ARGUMENT_INVALID')
      }
      let called = false
      const decide = (): undefined => {
        called = true
      }
      const odd = [{ where: {} }, { where: { id: null } }, { table: '' }, { rounds: 0 }, { versionColumn: '' }]
      for (const more of [...odd, { tokenColumn: 'version' }, { decide: 7 }, { dicide: decide }]) {
        await failing(db.optimistic({ ...update, decide, ...more } as never), 'ARGUMENT_INVALID')
      }
      await failing(db.optimistic({ ...update, decide }, { dedline: '1s' } as never), 'ARGUMENT_INVALID')
      holds(!called, 'that nothing was decided')
      same(await contents(world), before, 'the row')
    },
  },
  {
    id: 'store.rows.18',
    title: 'MUST know a command that is a whole number by its text',
    async run({ db, putItem }) {
      await putItem({ id: 'x', state: 'new' })
      const move = (command: string | number | bigint): Promise<unknown> =>
        db.transact((tx) => tx.transition('items', { ...pay, command }))
      const results = [await move(7), await move(7), await move(7n), await move('7'), await move('07')]
      const again = { result: 'already-applied' }
      same(results, [{ result: 'applied' }, again, again, again, { result: 'invalid', state: 'paid' }], 'results')
    },
  },
]
