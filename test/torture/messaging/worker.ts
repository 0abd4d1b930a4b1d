// A worker: emits what it is asked for, and beside that relays, handles what the outbox has and what the broker
// delivers, and purges. It dies where its fate says.

import { subscribe } from 'node:diagnostics_channel'
import type { Operations } from '../../../src/idempotency/index.js'
import { deadlineAfter, seededRandom } from '../../../src/kernel/index.js'
import { consume, deadLetters, type LetterDomain, purgeMessages, relay } from '../../../src/messaging/index.js'
import { fullJitter } from '../../../src/retry/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { sqlite } from '../../../src/stores/sqlite/index.js'
import { replaced } from '../replaced.js'
import {
  codeOf,
  losingCommits,
  openPool,
  say,
  serve,
  toldOf,
  type WorkerAnswer,
  type WorkerArguments,
} from '../worker-process.js'
import {
  type ConsumerName,
  classify,
  emitOperation,
  emitting,
  handlerOf,
  type Order,
  readers,
  type Sql,
  type Transaction,
} from './definitions.js'
import { publisherAt, sourceAt } from './link.js'
import type { Asked, State } from './part.js'
import { bugOf, type Store } from './planted.js'

const told = toldOf<WorkerArguments & { readonly port: number }>()
const { address, leaseMs, seed, port, calm } = told
const bug = bugOf(told.plant)
const limits = { deadline: '6s', connectionWait: '2s', lockWait: '2s' } as const

function open(): { readonly domain: object; readonly sql: Sql } {
  if ('postgres' in address) {
    const numbered: Sql = (text) => {
      let count = 0
      return text.replaceAll('?', () => `$${++count}`)
    }
    return { domain: postgres({ pool: openPool(address.postgres), name: 'torture', ...limits }), sql: numbered }
  }
  // Most COMMITs here are those of readers, which nobody has to look up.
  const lost = calm ? 0 : address.lostCommits * 4
  const domain = sqlite({ open: losingCommits(address.sqlite, lost, seed), name: 'torture', ...limits })
  return { domain, sql: (text) => text }
}

const { domain, sql } = open()
const db = domain as Store & Operations<never> & LetterDomain
const store = replaced<Store>(db, bug.store?.(db, sql) ?? {})
const random = seededRandom(`${seed}/${process.pid}`)
const patience = { deadline: '6s', bodyLimit: '6s', connectionWait: '2s' } as const
const transact = <Result>(body: (tx: Transaction) => Promise<Result>): Promise<Result> =>
  db.transact(body as never, patience)
const emit = emitOperation(db, sql)
const transactIntent = bug.transact?.(transact) ?? transact

async function emitOnce(order: Order): Promise<WorkerAnswer> {
  try {
    if (!order.keyed) return { final: await transactIntent((tx) => emitting(tx, order, sql)), replayed: false }
    const end = await emit.outcome(order)
    return { final: end.outcome === 'succeeded' ? end.value : 'refused', replayed: end.replayed }
  } catch (error) {
    return { error: codeOf(error) }
  }
}

/** What is left to do; with `mend`, handlers take what they did not, and dead letters come again. */
async function stateOnce(round: number, mend: boolean): Promise<State | { readonly error: string }> {
  try {
    if (mend) await transact((tx) => tx.query(sql('insert into mended (round) values (?)'), [round]))
    const groups = await deadLetters(db).groups()
    for (const { reader, code } of groups) {
      if (mend) await deadLetters(db).redrive({ reader, code }, { actor: 'torture', over: 0 })
    }
    const states = await db.messages.readers({ deadline: deadlineAfter('5s') })
    return {
      depth: states.reduce((sum, { depth }) => sum + depth, 0),
      letters: groups.map(({ reader, code, letters }) => ({ reader, code, letters })),
    }
  } catch (error) {
    return { error: codeOf(error) }
  }
}

// Shorter than its lease together, and in quiet times longer than any machine is busy for.
const [lease, deadline, storeLimit] = calm ? [15_000, 2_000, 5_000] : [leaseMs, leaseMs * 0.2, leaseMs * 0.35]
const shared = { lease, storeLimit, poll: 100, crashes: 100, backoff: fullJitter({ baseMs: 20, capMs: 300 }) } as const
const budget = false

const out = relay(store, {
  ...{ name: readers.relay, deadline, budget, attempts: 3, batch: 60, ...shared },
  to: bug.publisher?.(publisherAt(port)) ?? publisherAt(port),
})

function consumer(name: ConsumerName) {
  const plain = handlerOf(name, sql, () => (calm ? 1 : random.next()))
  const handle = bug.handler?.(plain, transact) ?? plain
  const from = name === 'direct' ? 'outbox' : (bug.source?.(sourceAt(port)) ?? sourceAt(port))
  const order = name === 'direct' ? 'key' : 'gapless'
  return consume(store, {
    ...{ name, from, order, handle: handle as never, classify, budget, attempts: 50, concurrency: 4, ...shared },
    // Longer than a stop: whoever goes on after one is kept out by its claim, and not by its time.
    ...{ deadline: '12s', redelivered: bug.memoryMs ?? '1h', memory: bug.memoryMs ?? '1d' },
  })
}

async function upkeep(): Promise<never> {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 900))
    const processedAfter = bug.memoryMs ?? '1d'
    await purgeMessages({ store: db, sentAfter: '1s', processedAfter }).catch(() => undefined)
  }
}

/** Tells the store of every reader, so that no message is emitted that one of them is not told of. */
async function register(): Promise<void> {
  for (const [kind, name] of Object.entries(readers)) {
    const reader = {
      name,
      kind: kind === 'relay' ? 'relay' : 'consumer',
      reads: name === readers.delivered ? 'inbox' : 'outbox',
    } as const
    for (let isKnown = false; !isKnown; ) {
      isKnown = await db.messages.register(reader, { deadline: deadlineAfter('3s') }).catch(() => false)
    }
  }
}

// How often a stop was long enough for somebody else to follow.
for (const reader of ['relay', 'consumer']) subscribe(`reprise.${reader}.fenced`, () => say({ fault: 'fenced' }))
await register()
const { signal } = new AbortController()
for (const working of [out, consumer('direct'), consumer('delivered')]) {
  working.run({ signal }).catch((error: unknown) => {
    console.error(error)
    process.exit(1)
  })
}
void upkeep()
serve((asked: Asked) => ('state' in asked ? stateOnce(asked.state, asked.mend) : emitOnce(asked)))
