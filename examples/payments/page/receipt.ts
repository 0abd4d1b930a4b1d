// One receipt: a payment's event on its way through outbox, relay and consumer, with buttons that make trouble there.

import { mintKey } from 'reprise/identity'
import { type Looked, pause, pay, type Receipt, receipts, redrive, till, tillDrill } from './calls.js'
import { element, made, write } from './elements.js'
import type { ServiceListener } from './events.js'
import { Lines } from './lines.js'

const shownReceipts = 8
// About a minute: longer than a dead relay's claim, also on a busy machine.
const mostLooks = 400
const lookMs = 150

/** What a button does: all but the last pay, and ask for the trouble of their name. */
type Act = 'pay' | 'kill-relay' | 'twice' | 'poison' | 'redrive'

const list = element('way')
const lines = new Lines<string>(list)
/** The numbers of payments, as they are shown. */
const numbers = new Map<string, number>()
let last: Looked = { items: [], letters: [] }
let isBusy = false

/** Makes the buttons work. */
export async function startReceipt(): Promise<void> {
  for (const button of buttons()) button.addEventListener('click', () => void press(button.dataset['act'] as Act))
  await looked()
}

/** Leaves the buttons that make no trouble. */
export function receiptWithoutDrills(): void {
  for (const button of buttons()) button.hidden = button.dataset['act'] !== 'pay'
  list.ariaBusy = 'false'
}

function buttons(): HTMLButtonElement[] {
  return [...element('receipt-buttons').querySelectorAll('button')]
}

const steps: Readonly<Record<string, readonly [text: string, kind: string]>> = {
  wire: ['on the wire', ''],
  receipt: ['receipt', 'good'],
  dropped: ['duplicate dropped', 'calm'],
  parked: ['dead letter', 'bad'],
  'relay-killed': ['relay killed', 'bad'],
  'relay-back': ['next relay', 'good'],
}

/** Draws the way of each event. */
export const way: ServiceListener = {
  told({ account, payment, what }) {
    const [text, kind] = steps[what] ?? []
    // The first story's payments have receipts too, which are not shown here.
    if (account !== till || payment === undefined || text === undefined) return
    lines.chip(payment, () => `payment ${numberOf(payment)}`, text, kind ?? '')
  },
  begun() {
    list.ariaBusy = 'false'
  },
  lost() {
    list.ariaBusy = 'true'
  },
}

async function press(act: Act): Promise<void> {
  if (isBusy) return
  busy(true)
  try {
    const id = act === 'redrive' ? await redriven() : await paid(act)
    write('receipt-verdict', id === undefined ? away : await settled(act, id))
  } finally {
    busy(false)
  }
}

const away = 'The service is away. Start it again with npm start, then go on.'

function busy(is: boolean): void {
  isBusy = is
  element('receipt').ariaBusy = String(is)
  for (const button of buttons()) {
    button.setAttribute('aria-disabled', String(is))
    if (button.dataset['act'] === 'redrive') button.disabled = openLetter() === undefined
  }
}

async function paid(act: Act): Promise<string | undefined> {
  write('receipt-verdict', 'Paid, and its event is in the outbox, in one commit. The relay is next.')
  const seen = await pay({ key: mintKey(), account: till }, { drill: `${tillDrill}, ${act}` })
  if (seen === 'nothing' || seen.payment === undefined) return undefined
  numberOf(seen.payment)
  return seen.payment
}

async function redriven(): Promise<string | undefined> {
  const letter = openLetter()
  return letter !== undefined && (await redrive(letter.payment)) ? letter.payment : undefined
}

// Looks until what was asked for can be seen, and says it.
async function settled(act: Act, id: string): Promise<string> {
  for (let look = 0; look < mostLooks; look += 1) {
    const receipt = (await looked()) ? last.items.find(({ payment }) => payment === id) : undefined
    const verdict = receipt === undefined ? undefined : verdictOn(act, receipt)
    if (verdict !== undefined) return verdict
    await pause(lookMs)
  }
  return 'It is still on its way. Nothing is lost: it is in the outbox.'
}

// Undefined: it is not over yet.
function verdictOn(act: Act, receipt: Receipt): string | undefined {
  const { wire, dropped, receipts: written } = receipt
  const isParked = openLetter() !== undefined
  if (act === 'redrive') {
    if (written === 0 || (!isParked && last.items.some((each) => each.receipts === 0))) return undefined
    return 'Mended, and sent again: its receipt is written, and then those that waited behind it, in their order.'
  }
  if (openLetter()?.payment === receipt.payment) {
    return 'The event has no currency, and no receipt can be written. It is a dead letter, and the till waits behind it.'
  }
  if (wire < (act === 'kill-relay' || act === 'twice' ? 2 : 1)) return undefined
  if (written === 0) return isParked ? 'Paid. Its event arrived, and waits behind the dead letter.' : undefined
  if (act === 'pay' || act === 'poison') return 'One event, one receipt.'
  if (dropped === 0) return undefined
  return act === 'twice'
    ? 'It was delivered twice. The second was recognised and dropped: one receipt.'
    : 'The relay had published, and was killed before it told the store. The next one published again: dropped, one receipt.'
}

// What the service knows now; false: it is away.
async function looked(): Promise<boolean> {
  const found = await receipts(till)
  if (found !== undefined) show(found)
  return found !== undefined
}

function show(found: Looked): void {
  last = found
  for (const { payment } of found.items.toReversed()) numberOf(payment)
  const sum = (of: 'wire' | 'dropped' | 'receipts'): string =>
    String(found.items.reduce((all, each) => all + each[of], 0))
  write('receipt-payments', String(found.items.length))
  for (const of of ['wire', 'dropped', 'receipts'] as const) write(`receipt-${of}`, sum(of))
  const letter = openLetter()
  const waiting = found.items.filter(({ payment, receipts: written }) => written === 0 && payment !== letter?.payment)
  element('letter').hidden = letter === undefined
  if (letter !== undefined) {
    const behind = waiting.length === 0 ? 'nothing is behind it yet' : `${waiting.length} behind it`
    write('letter', `Dead letter: payment ${numberOf(letter.payment)}. ${letter.reason} The till is parked: ${behind}.`)
  }
  element('receipts').replaceChildren(...found.items.slice(0, shownReceipts).map(row))
}

function row({ payment, wire, dropped, receipts: written }: Receipt): HTMLElement {
  const line = document.createElement('tr')
  const cells = [numberOf(payment), stateOf(payment, written), wire, dropped, written]
  line.append(...cells.map((cell) => made('td', '', String(cell))))
  if (written > 0) line.className = 'current'
  return line
}

function stateOf(payment: string, written: number): string {
  if (written > 0) return 'received'
  if (last.letters.some((letter) => letter.payment === payment)) return 'dead letter'
  return openLetter() === undefined ? 'on its way' : 'waits'
}

function openLetter() {
  return last.letters.find(({ state, parks }) => state === 'open' && parks)
}

function numberOf(payment: string): number {
  const number = numbers.get(payment) ?? numbers.size + 1
  numbers.set(payment, number)
  return number
}
