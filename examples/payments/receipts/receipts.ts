// Receipts: each payment emits an event in its own transaction, a relay publishes it at least once, and a consumer
// writes one receipt for it. Here is all that the service knows of that; the payment itself only calls `emit`.

import { subscribe } from 'node:diagnostics_channel'
import { sha256 } from 'reprise/kernel'
import { consume, deadLetters, type Message } from 'reprise/messaging'
import { type ConsumerMessageEvent, consumerDuplicate, consumerParked } from 'reprise/telemetry'
import { type Ledger, ownerOf, type Payment, type Transaction } from '../ledger.js'
import { RelayProcess } from './relay-process.js'
import { type Answering, RelaySource } from './wire.js'

/** Trouble that can be asked for on the way of a receipt. */
export type ReceiptTrouble = 'kill-relay' | 'twice' | 'poison'

/** What is told about a payment's event, live. */
export type ReceiptStep = 'wire' | 'relay-killed' | 'relay-back' | 'dropped' | 'parked' | 'receipt'

/** Whose event something is told about. */
export interface EventOf {
  readonly owner: string
  readonly account: string
  readonly payment: string
}

/** How far the receipt of a payment is. */
export interface ReceiptState {
  readonly payment: string
  /** How often its event was delivered since the service started. */
  readonly wire: number
  /** How often it was recognised as one that had been handled, since the service started. */
  readonly dropped: number
  /** How many receipts were written. */
  readonly receipts: number
}

/** A payment whose receipt cannot be written. */
export interface ReceiptLetter {
  readonly payment: string
  readonly code: string
  readonly reason: string
  readonly state: string
  /** Whether the account's later receipts wait for it. */
  readonly parks: boolean
}

/** What an event says. */
interface PaymentMade extends EventOf {
  readonly amountMinor: number
  /** Missing where a drill asked for a poison message. */
  readonly currency?: string
}

/** What is remembered of an event in this process, for whoever watches. */
interface Seen {
  readonly event: EventOf
  wire: number
  dropped: number
}

const reader = 'receipts'
const mostRemembered = 1_000
const mostLetters = 100

/** The receipts of the service. */
export class Receipts {
  readonly #ledger: Ledger
  readonly #tell: (event: EventOf, step: ReceiptStep) => void
  readonly #source: RelaySource
  /** Trouble that was asked for, by payment. */
  readonly #trouble = new Map<string, ReceiptTrouble>()
  readonly #seen = new Map<string, Seen>()
  /** The payment for which the relay was killed. */
  #killedFor: string | undefined

  /** @param tell Is told what happens, as it happens. */
  constructor(ledger: Ledger, tell: (event: EventOf, step: ReceiptStep) => void) {
    this.#ledger = ledger
    this.#tell = tell
    this.#source = new RelaySource({
      times: ({ id }) => (this.#trouble.get(id) === 'twice' ? 2 : 1),
      delivered: (message) => this.#delivered(message),
    })
    subscribe(consumerDuplicate.name, (event) => this.#count(event as ConsumerMessageEvent, 'dropped'))
    subscribe(consumerParked.name, (event) => this.#count(event as ConsumerMessageEvent, 'parked'))
  }

  /** Emits the event of a payment, with the transaction that makes it. */
  async emit(tx: Transaction, principal: string, payment: Payment, trouble?: ReceiptTrouble): Promise<void> {
    const { currency, ...rest } = madeOf(principal, payment)
    if (trouble !== undefined) remember(this.#trouble, payment.id, trouble)
    await tx.emit({
      id: payment.id,
      type: 'payment.made',
      subject: `payment/${payment.id}`,
      key: laneOf(principal, payment.account),
      data: trouble === 'poison' ? rest : { ...rest, currency },
    })
  }

  /** Relays and consumes until the signal ends it. Rejects where it cannot go on. */
  async run(signal: AbortSignal): Promise<void> {
    const consumer = consume(this.#ledger.db, {
      name: reader,
      from: this.#source,
      concurrency: 4,
      // The relay repeats for as long as it has the event. It is remembered for longer.
      redelivered: '7d',
      memory: '8d',
      handle: async (tx, { data }: Message<PaymentMade>) => {
        await this.#ledger.addReceipt(tx, data.payment, receiptOf(data))
        tx.afterCommit(() => this.#tell(data, 'receipt'))
      },
    })
    const relaying = new RelayProcess({
      take: (events) => this.#take(events),
      tell: (what) => this.#tellOfRelay(what),
    })
    // Whoever ends first ends the others; and the relay before the consumer, which answers it.
    const ending = new AbortController()
    const stopping = new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(relaying.stop().then(() => ending.abort())), { once: true })
    })
    try {
      await consumer.run({ signal: ending.signal })
    } finally {
      await (signal.aborted ? stopping : relaying.stop())
    }
  }

  /** How far the receipts of somebody's account are, the newest first, and what is in their way. */
  async look(
    principal: string,
    account: string,
  ): Promise<{ readonly items: readonly ReceiptState[]; readonly letters: readonly ReceiptLetter[] }> {
    const receipts = await this.#ledger.receipts(principal, account)
    const letters = await deadLetters(this.#ledger.db).list({
      reader,
      key: laneOf(principal, account),
      limit: mostLetters,
    })
    return {
      items: receipts.map(({ payment, receipts: written }) => {
        const { wire = 0, dropped = 0 } = this.#seen.get(payment) ?? {}
        return { payment, wire, dropped, receipts: written }
      }),
      letters: letters.map(({ id, code, reason, state, parks }) => ({ payment: id, code, reason, state, parks })),
    }
  }

  /** Mends the event of a payment that is a dead letter, and sends it again. False: there is none to decide about. */
  async redrive(principal: string, payment: Payment): Promise<boolean> {
    const letters = deadLetters(this.#ledger.db)
    const key = laneOf(principal, payment.account)
    const open = await letters.list({ reader, key, state: 'open', limit: mostLetters })
    const letter = open.find(({ id }) => id === payment.id)
    if (letter === undefined) return false
    await letters.edit(
      { reader, source: letter.source, id: letter.id },
      { data: madeOf(principal, payment), actor: 'page', reason: 'the currency was missing' },
    )
    return true
  }

  async #take(events: readonly string[]): Promise<Omit<Answering, 'published'>> {
    const taken = await this.#source.take(events)
    return { taken, kill: this.#killedFor !== undefined }
  }

  #delivered({ id, data }: Message): void {
    if (!this.#seen.has(id)) remember(this.#seen, id, { event: data as PaymentMade, wire: 0, dropped: 0 })
    this.#count({ consumer: reader, id }, 'wire')
    if (this.#trouble.get(id) === 'kill-relay') this.#killedFor = id
    this.#trouble.delete(id)
  }

  #count({ consumer, id }: Pick<ConsumerMessageEvent, 'consumer' | 'id'>, step: 'wire' | 'dropped' | 'parked'): void {
    const seen = consumer === reader ? this.#seen.get(id) : undefined
    if (seen === undefined) return
    if (step !== 'parked') seen[step] += 1
    this.#tell(seen.event, step)
  }

  #tellOfRelay(what: 'killed' | 'back'): void {
    const seen = this.#seen.get(this.#killedFor ?? '')
    if (seen !== undefined) this.#tell(seen.event, `relay-${what}`)
    if (what === 'back') this.#killedFor = undefined
  }
}

function madeOf(principal: string, { id, account, amountMinor, currency }: Payment): Required<PaymentMade> {
  return { payment: id, owner: ownerOf(principal), account, amountMinor, currency }
}

/** What stays in order: the payments of one account. */
function laneOf(principal: string, account: string): string {
  return `account/${sha256(JSON.stringify([ownerOf(principal), account]))}`
}

// Throws where the currency is missing: the event cannot be handled, however often it is tried.
function receiptOf({ account, amountMinor, currency }: PaymentMade): string {
  const money = new Intl.NumberFormat('en', { style: 'currency', currency: currency as string })
  return `Received of ${account}: ${money.format(amountMinor / 100)}`
}

function remember<Value>(memory: Map<string, Value>, id: string, value: Value): void {
  memory.set(id, value)
  for (const oldest of memory.keys()) {
    if (memory.size <= mostRemembered) break
    memory.delete(oldest)
  }
}
