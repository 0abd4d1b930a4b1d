// What every store must do with what its transactions emit: it is there exactly when the effect is, in order and
// numbered without a gap for each key, and everybody who reads is told.

import type { MessageDraft } from '../../../atomicity/index.js'
import { currentIntent, derive, type Key, scope } from '../../../identity/index.js'
import { eventLoopTurn, isRepriseError } from '../../../kernel/index.js'
import type { ConformanceCase, ConformanceHandle } from '../conformance-case.js'
import { failing, holds, same } from '../expectations.js'
import { needsSavepoints } from '../savepoint-cases.js'
import { emitRaceCases } from './emit-race-cases.js'
import type { OutboxRow, OutboxWorld } from './outbox-world.js'

const order = (number: number): MessageDraft => ({ type: 'order.placed', subject: `order/${number}`, data: { number } })

/** The numbers of the messages of a key, with their types. */
async function placesOf({ outboxRows }: OutboxWorld, key: string): Promise<readonly (readonly [unknown, unknown])[]> {
  const rows = (await outboxRows('message')).filter((row) => row['key'] === key)
  return rows.map((row) => [row['number'], row['type']] as const).sort(([a], [b]) => Number(a) - Number(b))
}

const reader = (name: string, reads: 'outbox' | 'inbox' = 'outbox'): OutboxRow => ({
  name,
  kind: 'relay',
  reads,
  told_to: null,
  at_ms: 0,
})

/** What cannot be a message, by the code of its refusal. */
const refusedDrafts: readonly (readonly [code: string, draft: unknown])[] = [
  ['MESSAGE_INVALID', undefined],
  ['MESSAGE_INVALID', 'order.placed'],
  ['MESSAGE_INVALID', { data: 1 }],
  ['MESSAGE_INVALID', { type: '', data: 1 }],
  ['MESSAGE_INVALID', { type: 'x'.repeat(256), data: 1 }],
  ['MESSAGE_INVALID', { type: 'a\0b', data: 1 }],
  ['MESSAGE_INVALID', { type: '\ud800', data: 1 }],
  ['MESSAGE_INVALID', { type: 'a', subject: '', data: 1 }],
  ['MESSAGE_INVALID', { type: 'a', key: 7, data: 1 }],
  ['MESSAGE_INVALID', { type: 'a', key: 'reprise:1', data: 1 }],
  ['MESSAGE_INVALID', { type: 'a', id: 'with space', data: 1 }],
  ['MESSAGE_INVALID', { type: 'a' }],
  ['MESSAGE_INVALID', { type: 'a', data: 1, after: 'soon' }],
  ['MESSAGE_INVALID', { type: 'a', data: 1, version: 1 }],
  ['MESSAGE_INVALID', { type: 'a', subject: 's', data: 1, version: 0 }],
  ['MESSAGE_INVALID', { type: 'a', subject: 's', key: 'k', data: 1, version: 1 }],
  ['MESSAGE_INVALID', { type: 'a', subject: 's', data: 1, version: 1, after: '1s' }],
  ['MESSAGE_INVALID', { type: 'a', data: 1, deliverAt: 5 }],
  ['MESSAGE_TOO_LARGE', { type: 'a', data: 'x'.repeat(262_143) }],
  ['JSON_VALUE_UNSUPPORTED', { type: 'a', data: { at: new Map() } }],
  ['JSON_VALUE_UNSUPPORTED', { type: 'a', data: 1n }],
]

async function emitsNothing(world: OutboxWorld): Promise<void> {
  for (const table of ['head', 'message', 'lane'] as const) {
    same(await world.outboxRows(table), [], `the rows of ${table}`)
  }
}

/** Cases of the group `store.emit`. */
export const emitCases: readonly ConformanceCase<OutboxWorld>[] = [
  {
    id: 'store.emit.01',
    title: 'MUST store what a transaction emits with its effect, and answer with the ids',
    async run(world) {
      const { db } = world
      const given = { id: 'given-1', type: 'order.paid', subject: 'order/1', key: 'customer/7', data: { total: 12.5 } }
      const [one, several] = await db.transact(async (tx) => {
        await world.effect(tx, 'a')
        const first = await tx.emit({ ...given, schema: 'https://schemas.example/paid' })
        return [first, await tx.emit([order(2), { type: 'note', data: null }])] as const
      })
      same([one, several.length, await world.effectsOf('a')], ['given-1', 2, 1], 'ids and effects')
      const rows = await world.outboxRows('message')
      const row = rows.find(({ id }) => id === 'given-1')
      const { at_ms: atMs, epoch, ...stored } = row ?? {}
      const content = { source: db.messages.source, codec: null, intent: null, traceparent: null, version: null }
      same(
        Object.entries(stored).sort(),
        Object.entries({
          ...content,
          id: 'given-1',
          type: 'order.paid',
          subject: 'order/1',
          key: 'customer/7',
          number: 1,
          schema: 'https://schemas.example/paid',
          data: '{"total":12.5}',
        }).sort(),
        'the row',
      )
      holds(Number(atMs) > 1_600_000_000_000 && Number(epoch) >= 1, 'it has a time and an epoch')
      const [second, third] = several.map((id) => rows.find((each) => each['id'] === id))
      same([second?.['key'], second?.['data']], ['order/2', '{"number":2}'], 'the key is the subject by default')
      holds(third?.['key'] !== undefined && String(third['key']).includes(String(third['id'])), 'or its own')
    },
  },
  {
    id: 'store.emit.02',
    title: 'MUST store nothing of what is rolled back, and leave no gap in the numbers of a key',
    async run(world) {
      const { db } = world
      await db.transact((tx) => tx.emit(order(1)))
      const own = new Error('of the body')
      const error = await failing(
        db.transact(async (tx) => {
          await tx.emit([order(1), order(2)])
          throw own
        }),
      )
      holds(error === own, 'the error is the one that the body threw')
      await db.transact((tx) => tx.emit([{ ...order(1), type: 'paid' }, order(3), { ...order(1), type: 'sent' }]))
      const places = [1, 2, 3].map((number) => placesOf(world, `order/${number}`))
      same(
        await Promise.all(places),
        [
          [
            [1, 'order.placed'],
            [2, 'paid'],
            [3, 'sent'],
          ],
          [],
          [[1, 'order.placed']],
        ],
        'numbers and types',
      )
    },
  },
  {
    id: 'store.emit.03',
    title: 'MUST drop what was emitted in a savepoint that is undone, and keep what was emitted around it',
    ...needsSavepoints,
    async run(world) {
      const emit = (tx: ConformanceHandle, type: string) => tx.emit({ type, subject: 's', data: null })
      await world.db.transact(async (tx) => {
        await emit(tx, 'before')
        await failing(
          tx.savepoint(async () => {
            await emit(tx, 'undone')
            await tx.savepoint(() => emit(tx, 'undone with the outer one'))
            throw new Error('of the savepoint')
          }),
        )
        await tx.savepoint(async () => {
          await emit(tx, 'kept')
          await failing(
            tx.savepoint(async () => {
              await emit(tx, 'undone inside')
              await world.offend(tx)
            }),
          )
          await emit(tx, 'kept too')
        })
      })
      same(
        await placesOf(world, 's'),
        [
          [1, 'before'],
          [2, 'kept'],
          [3, 'kept too'],
        ],
        'numbers and types',
      )
    },
  },
  {
    id: 'store.emit.04',
    title: 'MUST refuse what cannot be a message before anything of it is kept; the transaction can go on',
    async run(world) {
      await world.db.transact(async (tx) => {
        for (const [code, draft] of refusedDrafts) {
          await failing(tx.emit(draft as MessageDraft), code)
          await failing(tx.emit([order(1), draft as MessageDraft]), code)
        }
        await world.effect(tx, 'a')
      })
      await emitsNothing(world)
      same(await world.effectsOf('a'), 1, 'effects')
      const large = await failing(
        world.db.transact((tx) => tx.emit({ type: 'a', data: 'x'.repeat(262_143) })),
        'MESSAGE_TOO_LARGE',
      )
      const details = isRepriseError(large) ? large.details : {}
      same([details['bytes'], details['limitBytes']], [262_145, 262_144], 'the size and the limit')
      await world.db.transact((tx) => tx.emit({ type: 'a', data: 'x'.repeat(262_142) }))
    },
  },
  {
    id: 'store.emit.05',
    title: 'MUST refuse an id that is taken with MESSAGE_EXISTS, once, and store nothing of that transaction',
    async run(world) {
      const { db } = world
      await db.transact((tx) => tx.emit({ id: 'a', type: 'first', data: 1 }))
      let runs = 0
      await failing(
        db.transact(async (tx) => {
          runs += 1
          await world.effect(tx, 'a')
          await tx.emit([order(1), { id: 'a', type: 'second', data: 2 }])
        }),
        'MESSAGE_EXISTS',
      )
      const twice = db.transact((tx) =>
        tx.emit([
          { id: 'b', type: 'twice', data: 1 },
          { id: 'b', type: 'twice', data: 1 },
        ]),
      )
      await failing(twice, 'MESSAGE_EXISTS')
      const types = (await world.outboxRows('message')).map(({ type }) => type)
      same([types, runs, await world.effectsOf('a')], [['first'], 1, 0], 'messages, runs and effects')
    },
  },
  {
    id: 'store.emit.06',
    title: 'MUST refuse a version of a subject that was emitted before, also when its message has been purged',
    async run(world) {
      const { db } = world
      const emit = (version: number, subject = 's') =>
        db.transact((tx) => tx.emit({ type: 'changed', subject, version, data: version }))
      await emit(1)
      await emit(2)
      await emit(2, 'other')
      await failing(emit(2), 'VERSION_TAKEN')
      await emit(3)
      // As a purge leaves it: the messages are gone, and their head knows up to which version.
      const [head] = (await world.outboxRows('head')).filter(({ key }) => key === 's')
      await world.emptyOutboxRows('message')
      await world.emptyOutboxRows('head')
      await world.putOutboxRow('head', { ...head, key: 's', purged_version: 3 })
      for (const version of [1, 2, 3]) await failing(emit(version), 'VERSION_TAKEN')
      await emit(4)
      same(await placesOf(world, 's'), [[4, 'changed']], 'the numbers go on')
    },
  },
  {
    id: 'store.emit.07',
    title: 'MUST begin a higher epoch where the head of a key is gone, also where all of them are',
    async run(world) {
      const epochs: number[] = []
      for (const number of [1, 2, 3]) {
        await world.db.transact((tx) => tx.emit([order(7), order(8), order(7)]))
        const heads = await world.outboxRows('head')
        const head = heads.find(({ key }) => key === 'order/7')
        same(head?.['number'], 2, `the last number of epoch ${number}`)
        epochs.push(Number(head?.['epoch']))
        for (const table of ['head', 'message', 'lane'] as const) await world.emptyOutboxRows(table)
      }
      const [first = 0, second = 0, third = 0] = epochs
      holds(first < second && second < third, `each epoch of ${epochs.join(', ')} is higher`)
    },
  },
  {
    id: 'store.emit.08',
    title: 'MUST tell everybody who reads the outbox, and leave alone who rests, has a claim or is parked',
    async run(world) {
      for (const name of ['idle', 'rests', 'parked']) await world.putOutboxRow('reader', reader(name))
      await world.putOutboxRow('reader', reader('elsewhere', 'inbox'))
      const lane = { key: 'order/1', owner: null, history: '' }
      await world.putOutboxRow('lane', { ...lane, reader: 'idle', state: 0, due_at_ms: 5 })
      await world.putOutboxRow('lane', { ...lane, reader: 'rests', state: 1, due_at_ms: 6, owner: 'me', attempt: 3 })
      await world.putOutboxRow('lane', { ...lane, reader: 'parked', state: 2, due_at_ms: 7 })
      await world.db.transact((tx) => tx.emit([order(1), order(1), order(2)]))
      const heads = await world.outboxRows('head')
      const epochOf = (key: unknown) => heads.find((head) => head['key'] === key)?.['epoch']
      const lanes = (await world.outboxRows('lane')).map((row) => ({ ...row }) as OutboxRow)
      const told = lanes
        .filter(({ key }) => key === 'order/1')
        .map(({ reader: name, state, due_at_ms: due }) => [name, state, Number(due) > 1_000 ? 'now' : due])
      const wanted = [
        ['idle', 1, 'now'],
        ['parked', 2, 7],
        ['rests', 1, 6],
      ]
      same(told.sort(), wanted, 'state and due time')
      for (const { key, known_epoch: epoch, known_number: number } of lanes) {
        same([epoch, number], [epochOf(key), key === 'order/1' ? 2 : 1], 'what a lane knows')
      }
      same(
        lanes
          .filter(({ key }) => key === 'order/2')
          .map(({ reader: name, epoch, number }) => [name, epoch, number])
          .sort(),
        [
          ['idle', 0, 0],
          ['parked', 0, 0],
          ['rests', 0, 0],
        ],
        'new lanes, of which nothing is done',
      )
      const rests = lanes.find(({ reader: name, key }) => name === 'rests' && key === 'order/1')
      same([rests?.['owner'], rests?.['attempt']], ['me', 3], 'the claim')
    },
  },
  {
    id: 'store.emit.09',
    title: 'MUST emit once for an operation that is called again, with a name derived from its key',
    async run(world) {
      const key = 'emit-once' as Key
      let inside: Key | undefined
      const place = world.db.operation('place', {
        scope: () => scope('conformance'),
        key: () => key,
        window: '1h',
        run: async (tx, number: number) => {
          inside = currentIntent()?.key
          return tx.emit({ type: 'placed', subject: 's', data: number })
        },
      })
      const ids = [await place(1), await place(1)]
      const rows = await world.outboxRows('message')
      const stored = rows.map(({ id, intent }) => [id, intent])
      holds(inside !== undefined, 'an intent with a key is in flight')
      same([ids, stored], [[ids[0], ids[0]], [[ids[0], derive(inside ?? key, 'emit')]]], 'ids and intents')
    },
  },
  {
    id: 'store.emit.10',
    title: 'MUST refuse to emit in a transaction that has failed, and after its end',
    async run(world) {
      let left: ConformanceHandle | undefined
      await world.db.transact(async (tx) => {
        left = tx
      })
      await failing((left as ConformanceHandle).emit(order(1)), 'TRANSACTION_OVER')
      await failing(
        world.db.transact(async (tx) => {
          await failing(world.offend(tx))
          await failing(tx.emit(order(1)))
        }),
      )
      await emitsNothing(world)
    },
  },
  {
    id: 'store.emit.11',
    title: 'MUST store what the body emits and does not wait for, and fail with what is refused then',
    async run(world) {
      await world.db.transact((tx) => {
        void tx.emit(order(1))
        void (async () => {
          await eventLoopTurn()
          await tx.emit(order(1)).catch(() => undefined)
        })()
        void world.effect(tx, 'a')
      })
      const numbers = (await placesOf(world, 'order/1')).map(([number]) => number)
      // The second one came in time, or was refused: never half of it.
      holds(numbers[0] === 1 && numbers.length <= 2, `the numbers ${numbers.join(', ')}`)
      same(await world.effectsOf('a'), 1, 'effects')
    },
  },
  {
    id: 'store.emit.12',
    title: 'MUST give a delayed message a key of its own, which is due after the delay',
    async run(world) {
      await world.putOutboxRow('reader', reader('late'))
      const later = { ...order(1), after: '1h' } as const
      const [id] = await world.db.transact((tx) => tx.emit([later, order(1), { type: 'now', data: 1, after: 0 }]))
      const [row] = (await world.outboxRows('message')).filter((each) => each['id'] === id)
      same([row?.['number'], row?.['subject']], [1, 'order/1'], 'the delayed one')
      same(await placesOf(world, 'order/1'), [[1, 'order.placed']], 'the others of its subject')
      const lanes = await world.outboxRows('lane')
      const due = lanes.find(({ key }) => key === row?.['key'])?.['due_at_ms']
      same(Number(due) - Number(row?.['at_ms']) >= 3_600_000 - 5, true, 'it is due an hour later')
      const soon = lanes.filter(({ due_at_ms: ms }) => Number(ms) < Number(row?.['at_ms']) + 60_000)
      same([lanes.length, soon.length], [3, 2], 'lanes, and those that are due now')
    },
  },
  {
    id: 'store.emit.13',
    title: 'MUST refuse to emit in a transaction that was declared read-only',
    deniedBy: ({ readOnly, because }) => (readOnly ? undefined : (because.readOnly ?? 'no read-only transactions')),
    async run(world) {
      await failing(
        world.db.transact((tx) => tx.emit(order(1)), { readOnly: true }),
        'TRANSACTION_READ_ONLY',
      )
      await emitsNothing(world)
    },
    async refusal(world) {
      await failing(
        world.db.transact((tx) => tx.emit(order(1)), { readOnly: true }),
        'CAPABILITY_UNSUPPORTED',
      )
    },
  },
  {
    id: 'store.emit.14',
    title: 'MUST commit what a body emits that does nothing else, and wake who waits in the process after it',
    async run(world) {
      let woken = 0
      const end = world.db.messages.onEmit(() => {
        woken += 1
      })
      await world.db.transact(async () => 'nothing')
      for (let turn = 0; turn < 3; turn += 1) await eventLoopTurn()
      same(woken, 0, 'calls without a message')
      await world.db.transact((tx) => tx.emit(order(1)))
      for (let turn = 0; turn < 3; turn += 1) await eventLoopTurn()
      same(woken, 1, 'calls after a message')
      end()
      await world.db.transact((tx) => tx.emit(order(1)))
      for (let turn = 0; turn < 3; turn += 1) await eventLoopTurn()
      same([woken, (await placesOf(world, 'order/1')).length], [1, 2], 'calls after the end, and messages')
    },
  },
  ...emitRaceCases,
]
