// Operations under torture: callers in this process want intents of worker processes, several at once, again and again,
// and sometimes with another content; in the end every intent is asked for until it is decided.

import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { leasedFaultPoints, operationFaultPoints } from '../../../src/idempotency/index.js'
import type { Random } from '../../../src/kernel/index.js'
import { transactionFaultPoints } from '../../../src/transaction/index.js'
import { draw } from '../engines/engine.js'
import type { Part, PartRun, World } from '../part.js'
import type { Violation } from '../report.js'
import type { WorkerAnswer } from '../worker-process.js'
import { type Ends, ledgerTable, type OperationName, type Order, type Way } from './definitions.js'
import { type CalledEffect, finalsOf, type JudgedCall, type JudgedIntent, judge } from './judge.js'
import { bugNames } from './planted.js'
import { type OpenReceiver, openReceiver } from './receiver.js'

/** What a worker of this part is asked for. */
export type Asked = Order | { readonly settle: Order; readonly receipt: string | null }

const callerCount = 24
/** How long a caller waits before it turns to something else, in ms; the answer is noted whenever it comes. */
const patienceMs = 250
/** How many calls may be under way. */
const mostUnderWay = 400
const askerCount = 16
const rivalCount = 3
/** How many intents of a round are wanted again. */
const recentCount = 200
/** How often an intent is asked for after the faults before it counts as stuck; with the waits it takes a minute. */
const mostAsks = 60

const operations: readonly OperationName[] = [
  ...Array.from({ length: 11 }, () => 'book' as const),
  ...Array.from({ length: 4 }, () => 'charge-rerun' as const),
  ...Array.from({ length: 4 }, () => 'charge-resolve' as const),
  'charge-hold',
]
const ends: readonly Ends[] = [...Array.from({ length: 8 }, () => 'done' as const), 'refused', 'declined']
const ways: readonly Way[] = [
  ...Array.from({ length: 7 }, () => 'plain' as const),
  ...(['slow', 'slow', 'throws', 'loses-answer'] as const),
]

interface Intent extends JudgedIntent {
  readonly operation: OperationName
  readonly ends: Ends
  /** One, or two that compete for the key. */
  readonly contents: readonly string[]
  readonly calls: JudgedCall[]
}

class OperationsRun implements PartRun {
  readonly told: PartRun['told']
  readonly #world: World
  readonly #receiver: OpenReceiver
  readonly #all: Intent[] = []
  #round: Intent[] = []
  #underWay = 0

  constructor(world: World, receiver: OpenReceiver) {
    this.#world = world
    this.#receiver = receiver
    this.told = { receiver: receiver.url }
  }

  get intents(): number {
    return this.#all.length
  }

  async work(signal: AbortSignal): Promise<void> {
    this.#round = []
    await Promise.all(Array.from({ length: callerCount }, () => this.#caller(signal)))
  }

  async #caller(signal: AbortSignal): Promise<void> {
    const { random } = this.#world
    while (!signal.aborted) {
      const again = this.#round.length > 0 && random.next() < 0.3
      const intent = again ? draw(random, this.#round.slice(-recentCount)) : this.#wanted(random)
      const duplicates = random.next() < 0.5 ? 1 : 2 + Math.floor(random.next() * 3)
      const calls = Array.from({ length: duplicates }, () => {
        const way = draw(random, ways)
        return this.#call(intent, draw(random, intent.contents), way)
      })
      await Promise.race([Promise.all(calls), wait(patienceMs)])
      while (this.#underWay > mostUnderWay && !signal.aborted) await wait(20)
    }
  }

  #wanted(random: Random): Intent {
    const operation = draw(random, operations)
    const contents = random.next() < 0.15 ? ['one', 'other'] : ['one']
    const mode = operation === 'book' ? 'atomic' : 'leased'
    const id = randomUUID()
    const intent: Intent = { id, key: id, operation, mode, ends: draw(random, ends), contents, calls: [] }
    this.#round.push(intent)
    this.#all.push(intent)
    return intent
  }

  async #call(intent: Intent, content: string, way: Way): Promise<WorkerAnswer | undefined> {
    const late = finalsOf(intent.calls).length > 0
    const call: JudgedCall = { id: randomUUID(), content, late, told: undefined }
    intent.calls.push(call)
    this.#underWay += 1
    call.told = (await this.#world.workers.call(orderOf(intent, call, way))) as WorkerAnswer | undefined
    this.#underWay -= 1
    return call.told
  }

  async judge(): Promise<readonly Violation[]> {
    const left = this.#round.values()
    const asker = async (): Promise<void> => {
      for (const intent of left) await this.#decide(intent)
    }
    await Promise.all(Array.from({ length: askerCount }, asker))
    const booked = await this.#world.engine.rows<CalledEffect>('select intent, part, call, result from ledger')
    const charged = this.#receiver.log.map(({ intent, call, receipt }) => ({ intent, call, result: receipt }))
    // Those of earlier rounds too: an effect may have come since they were decided.
    return judge(this.#all, [...booked, ...charged])
  }

  /** Asks until it is decided; a person settles what is held. */
  async #decide(intent: Intent): Promise<void> {
    for (let asks = 0; asks < mostAsks; asks += 1) {
      const content = intent.contents[asks % intent.contents.length] ?? 'one'
      // What nobody was told the end of may lie under a claim that is over: several go for it at the same time.
      const rivals = finalsOf(intent.calls).length > 0 ? 1 : rivalCount
      const [told] = await Promise.all(Array.from({ length: rivals }, () => this.#call(intent, content, 'plain')))
      // The last one is asked alone, when all that went for it are through.
      if (rivals === 1 && told !== undefined && 'final' in told) return
      if (rivals > 1 && finalsOf(intent.calls).length > 0) continue
      if (told === undefined || 'final' in told) continue
      if (told.error === 'OPERATION_UNKNOWN' && intent.operation === 'charge-hold') {
        const receipt = this.#receiver.of(intent.id) ?? null
        const settle = orderOf(intent, { id: randomUUID(), content }, 'plain')
        await this.#world.workers.call({ settle, receipt } satisfies Asked)
      } else if (told.error !== 'OPERATION_MISMATCH') await wait(Math.min(1_500, 50 * 2 ** asks))
    }
  }

  close(): Promise<void> {
    return this.#receiver.close()
  }
}

const orderOf = (
  { operation, id, key, ends }: Intent,
  { id: call, content }: Pick<JudgedCall, 'id' | 'content'>,
  way: Way,
): Order => ({
  operation,
  intent: id,
  key,
  content,
  call,
  ends,
  way,
})

/** Operations. */
export const operationsPart: Part = {
  name: 'operations',
  worker: 'operations-worker',
  leaseMs: 1_000,
  tables: [ledgerTable],
  points: [...transactionFaultPoints, ...operationFaultPoints, ...leasedFaultPoints],
  bugs: bugNames,
  open: async (world) => new OperationsRun(world, await openReceiver()),
}
