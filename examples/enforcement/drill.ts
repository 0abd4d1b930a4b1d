// The drill: every process is killed where it hurts most, started again, and asked again. In the end there is one action
// for each that was wanted, and one entry downstream for each action.

import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { deadlineAfter } from 'reprise'
import { killAt } from 'reprise/testing'
import { type Command, migrate } from './actions.js'
import type { Answer, Intent } from './client.js'
import { table } from './plan.js'
import { Journal, Process, type Role, until } from './processes.js'
import { openRegister, type Register } from './register.js'
import { openStore, type Store, type Transaction, type TransactOptions } from './store.js'

/** Who is killed, and where. */
const kills = [
  { role: 'client', point: 'client.answered', when: 'it has the answer, and nobody knows' },
  { role: 'service', point: 'transaction.before-commit', when: 'all is written, COMMIT not sent' },
  { role: 'service', point: 'transaction.committed', when: 'COMMIT is through, the answer not sent' },
  { role: 'relay', point: 'relay.published', when: 'the event is published, and not marked' },
  { role: 'register', point: 'consumer.handled', when: 'the entry is written, and not committed' },
  { role: 'register', point: 'consumer.committed', when: 'the entry is committed, and not acknowledged' },
] as const satisfies readonly { role: Role; point: string; when: string }[]

/** A process that was killed. */
interface Kill {
  readonly process: Role
  readonly point: string
  readonly signal: string
}

/** What came of it. */
export interface Result {
  /** Actions that were wanted: pairs of a case and a violation code. */
  readonly expected: number
  /** Requests that arrived at the service. */
  readonly requests: number
  /** Transactions that were begun for them. */
  readonly attempts: number
  /** Of those, the ones that failed and were repeated as a whole. */
  readonly repeats: number
  /** Events that arrived at the register, however often. */
  readonly wire: number
  /** Of those, the ones that had been entered before. */
  readonly duplicatesDropped: number
  /** Actions in the store of the service. */
  readonly actions: number
  /** Entries in the register. */
  readonly downstream: number
  readonly kills: readonly Kill[]
}

/** Whether there is one of each, and everybody was killed who was to be. */
export function isGood({ expected, actions, downstream, wire, duplicatesDropped, kills: killed }: Result): boolean {
  const oneOfEach = actions === expected && downstream === expected
  return oneOfEach && wire >= downstream + duplicatesDropped && killed.length === kills.length
}

/** The result as two tables. */
export function resultTable({ kills: killed, ...counts }: Result): string {
  const rows = killed.map(({ process, point, signal }, index) => [process, point, signal, kills[index]?.when ?? ''])
  const sums = Object.entries(counts).map(([name, count]) => [name, count as number] as const)
  return `${table(['killed', 'at', 'by', 'when'], rows)}\n\n${table(['what', 'count'], sums)}`
}

/** Where the drill works. */
export interface Workplace {
  /** A folder of its own. */
  readonly folder: string
  /** The store of the service. */
  readonly database: string
}

/** Runs the drill. @param say Is told how far it is. */
export async function drill({ folder, database }: Workplace, say: (line: string) => void): Promise<Result> {
  const store = openStore(database)
  await migrate(store)
  const register = await openRegister(`${folder}/register.db`, () => undefined)
  const stage = new Stage(folder, database, store, register)
  try {
    await stage.open()
    say('the same request three times at once, then once more under another key')
    await stage.duplicates()
    say('four actions of one case at once')
    await stage.crowd()
    say('another program holds what the action needs')
    await stage.contention()
    for (const { role, point } of kills) {
      say(`the ${role} is killed at ${point}`)
      await stage.kill(role, point)
    }
    await stage.settled()
    await stage.close()
    return await stage.result()
  } finally {
    await stage.close()
    await register.close()
    await store.close()
  }
}

class Stage {
  readonly #folder: string
  readonly #database: string
  readonly #store: Store
  readonly #register: Register
  readonly #journal: Journal
  readonly #at = new Map<Role, Process>()
  readonly #addresses = new Map<Role, string>()
  readonly #wanted = new Set<string>()
  readonly #killed: Kill[] = []

  constructor(folder: string, database: string, store: Store, register: Register) {
    this.#folder = folder
    this.#database = database
    this.#store = store
    this.#register = register
    this.#journal = new Journal(`${folder}/journal.txt`)
  }

  async open(): Promise<void> {
    for (const role of ['register', 'service', 'relay'] as const) await this.#start(role)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#at.values()].map((process) => process.stop()))
    this.#at.clear()
  }

  async duplicates(): Promise<void> {
    const intent = this.#intent('c-1', 'dumping')
    await this.#send([intent, intent, intent])
    await this.#send([{ ...intent, key: randomUUID() }])
  }

  // On PostgreSQL the database lets one of them through at a time, and the others are repeated.
  async crowd(): Promise<void> {
    await this.#send(['noise', 'smoke', 'dust', 'light'].map((code) => this.#intent('c-2', code)))
  }

  async contention(): Promise<void> {
    const intent = this.#intent('c-3', 'dumping')
    const repeats = (): number => this.#journal.count('repeat')
    await whileHeld(this.#store, intent.command, repeats, () => this.#send([intent]))
  }

  /** Kills a process while something is asked for, starts it again, and asks until it is answered. */
  async kill(role: Role, point: string): Promise<void> {
    const intent = this.#intent(`c-${4 + this.#killed.length}`, 'dumping')
    await this.settled()
    const faults = killAt(point)
    const victim = role === 'client' ? this.#client([intent], faults) : await this.#restart(role, faults)
    const sending = role === 'client' ? undefined : this.#send([intent])
    const { signal } = await victim.ended
    if (signal !== 'SIGKILL' || !victim.isKilledAt(point)) throw new Error(`The ${role} was not killed at ${point}.`)
    this.#killed.push({ process: role, point, signal })
    if (role === 'client') await this.#send([intent])
    else await this.#start(role)
    await sending
  }

  /** Waits until the relay has nothing left that it has not published and marked. */
  async settled(): Promise<void> {
    await until(async () => {
      const readers = await this.#store.db.messages.readers({ deadline: deadlineAfter('10s') })
      return readers.some(({ name, depth }) => name === 'register' && depth === 0)
    }, 'the relay to have published everything')
  }

  async result(): Promise<Result> {
    const count = (word: Parameters<Journal['count']>[0]): number => this.#journal.count(word)
    return {
      expected: this.#wanted.size,
      requests: count('request'),
      attempts: count('attempt'),
      repeats: count('repeat'),
      wire: count('wire'),
      duplicatesDropped: count('duplicate'),
      actions: await this.#actions(),
      downstream: await this.#register.entries(),
      kills: this.#killed,
    }
  }

  // The key is minted here, before anything is sent, and outlives every process of the drill.
  #intent(caseId: string, violationCode: string): Intent {
    this.#wanted.add(`${caseId}/${violationCode}`)
    return { key: randomUUID(), command: { caseId, violationCode } }
  }

  async #actions(): Promise<number> {
    const { rows } = await this.#store.db.transact(
      (tx) => tx.query<{ actions: unknown }>('select count(*) as actions from enforcement_action'),
      patient,
    )
    return Number(rows[0]?.actions)
  }

  // Two seconds may be over while a process starts again: whoever wants the action asks again, with the same key.
  async #send(intents: readonly Intent[]): Promise<void> {
    for (let time = 1; time <= 100; time += 1) {
      const client = this.#client(intents)
      const { code } = await client.ended
      if (code === 0) {
        const answers = JSON.parse(client.printed) as readonly Answer[]
        if (answers.every(({ status }) => status === 200 || status === 201)) return
      }
      await sleep(100)
    }
    throw new Error('Asked a hundred times, and never answered.')
  }

  #client(intents: readonly Intent[], faults: object = {}): Process {
    const url = this.#addresses.get('service') ?? ''
    return new Process('client', { url, intents: JSON.stringify(intents) }, faults)
  }

  async #restart(role: Role, faults: object): Promise<Process> {
    await this.#at.get(role)?.stop()
    return this.#start(role, faults)
  }

  // On the port that it had before: the others know it by that.
  async #start(role: Role, faults: object = {}): Promise<Process> {
    const { port = '0' } = this.#addresses.has(role) ? new URL(this.#addresses.get(role) ?? '') : {}
    const journal = `${this.#folder}/journal.txt`
    const settings = {
      service: { journal, database: this.#database, port },
      register: { journal, file: `${this.#folder}/register.db`, port },
      relay: { database: this.#database, url: this.#addresses.get('register') ?? '' },
      client: {},
    }[role]
    const process = new Process(role, settings, faults)
    this.#at.set(role, process)
    const address = await process.ready()
    if (role !== 'relay') this.#addresses.set(role, address)
    return process
  }
}

/**
 * Holds the row that an action needs, in a transaction of somebody else, until one that waited for it was repeated; then
 * lets go. Gives what `ask` gave.
 *
 * @param repeats How many were repeated so far.
 */
export async function whileHeld<Value>(
  store: Store,
  { caseId, violationCode }: Command,
  repeats: () => number,
  ask: () => Promise<Value>,
): Promise<Value> {
  const before = repeats()
  let asked: Promise<Value> | undefined
  const hold = async (tx: Transaction): Promise<never> => {
    const row = { case_id: caseId, violation_code: violationCode, number: 0 }
    await tx.insertOnce('enforcement_action', row, ['case_id', 'violation_code'])
    asked ??= ask()
    await until(() => repeats() > before, 'a transaction that is repeated')
    throw new LetGo()
  }
  await store.db.transact(hold, patient).catch((error: unknown) => {
    if (!(error instanceof LetGo)) throw error
  })
  return asked as Promise<Value>
}

/** For transactions of the drill itself, which wait for processes to start. */
const patient: TransactOptions = { deadline: '300s', bodyLimit: '250s', lockWait: '60s' }

/** Rolls a transaction back that was only to hold something. */
class LetGo extends Error {}
