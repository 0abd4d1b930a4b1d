// One payment: buttons that make trouble, and what became of the intent.

import { mintKey } from 'reprise/identity'
import { amountMinor, type Intent, pause, pay, payments, type Seen, till } from './calls.js'
import { element, made, write } from './elements.js'
import { clearTrail } from './trail.js'

const money = new Intl.NumberFormat('en', { style: 'currency', currency: 'EUR' })
const shownPayments = 8

let intent: Intent | undefined
let calls = 0
let isBusy = false

/** What the buttons send beside the payment. */
const drills = { send: undefined, drop: 'drop', crash: 'exit=before-commit, restart' } as const

/** Makes the buttons work. */
export async function startPayment(): Promise<void> {
  write('amount', money.format(amountMinor / 100))
  for (const button of buttons()) button.addEventListener('click', () => void press(button.dataset['act'] ?? ''))
  await showLedger()
}

function buttons(): HTMLButtonElement[] {
  return [...element('buttons').querySelectorAll('button')]
}

/** Leaves the buttons that make no trouble, and says so. */
export function paymentWithoutDrills(): void {
  for (const button of buttons()) button.hidden = ['drop', 'crash'].includes(button.dataset['act'] ?? '')
  element('trail').ariaBusy = 'false'
  const notice = element('notice')
  notice.hidden = false
  notice.textContent = 'Drills are off here (REPRISE_DRILL): no trouble can be made, and nothing is shown live.'
}

async function press(act: string): Promise<void> {
  if (isBusy) return
  busy(true)
  try {
    if (act === 'retry' && intent !== undefined) say(await call(intent))
    else if (act === 'ten') await ten(begin())
    else say(await call(begin(), drills[act as keyof typeof drills]), true)
  } finally {
    await showLedger()
    busy(false)
  }
}

function busy(is: boolean): void {
  isBusy = is
  for (const button of buttons()) {
    button.setAttribute('aria-disabled', String(is))
    if (button.dataset['act'] === 'retry') button.disabled = intent === undefined
  }
}

function begin(): Intent {
  // Not crypto.randomUUID, which browsers keep back over plain HTTP. The key begins with the time; its end is chance.
  const key = mintKey()
  intent = { key, account: `order-${key.slice(-4)}` }
  calls = 0
  clearTrail()
  write('key', key)
  return intent
}

function call(given: Intent, drill?: string): Promise<Seen> {
  calls += 1
  write('calls', String(calls))
  return pay(given, drill)
}

async function ten(given: Intent): Promise<void> {
  const seen = await Promise.all(Array.from({ length: 10 }, () => call(given, 'slow=300')))
  const count = (test: (one: Seen) => boolean): number => seen.filter(test).length
  const refused = count((one) => one !== 'nothing' && one.status === 409)
  const replayed = count((one) => one !== 'nothing' && one.replayed)
  const executed = count((one) => one !== 'nothing' && one.status === 201 && !one.replayed)
  const repeated = replayed > 0 ? `, ${replayed} got its answer` : ''
  const turned = refused > 0 ? `, ${refused} were refused while it was at work (409). Retry gets the answer` : ''
  write('verdict', `Ten calls at once, one key: ${executed} was carried out${repeated}${turned}.`)
}

function say(seen: Seen, isFirst = false): void {
  if (seen === 'nothing')
    write('verdict', 'No answer came. Did it happen? Nobody can tell from here: retry, with the same key.')
  else if (seen.replayed && isFirst)
    write('verdict', 'The answer was lost, the browser repeated the call by itself, and got the answer from memory.')
  else if (seen.replayed) write('verdict', `${seen.status}, from memory: it had happened, and did not happen again.`)
  else if (seen.status === 201) write('verdict', '201: the payment was made, by this call.')
  else write('verdict', `${seen.status}: nothing was carried out by this call.`)
}

// The service may be starting again: a few looks, then what is known stays.
async function showLedger(): Promise<void> {
  for (let look = 0; look < 40; look += 1) {
    const found = (await payments())?.filter(({ account }) => account !== till)
    if (found !== undefined) {
      const own = found.filter(({ account }) => account === intent?.account)
      write('made', String(own.length))
      const rows = found.slice(-shownPayments).reverse()
      element('ledger').replaceChildren(...rows.map((payment) => row(payment, own.includes(payment))))
      return
    }
    await pause(150)
  }
  write('verdict', 'The service is away. Start it again with npm start, then retry.')
}

function row(
  { id, account, amountMinor: minor }: { id: string; account: string; amountMinor: number },
  isOwn: boolean,
) {
  const line = document.createElement('tr')
  if (isOwn) line.className = 'current'
  line.append(made('td', '', account), made('td', '', money.format(minor / 100)), made('td', '', id.slice(0, 8)))
  return line
}
