// One payment: buttons that make trouble on the route with Reprise and on one without, and what became of the intent.

import { mintKey } from 'reprise/identity'
import {
  type Intent,
  type Listed,
  pause,
  pay,
  payments,
  type Route,
  routeOf,
  type Seen,
  till,
  usualMinor,
} from './calls.js'
import { element, made, write } from './elements.js'
import { clearTrail, isFollowed } from './trail.js'

const money = new Intl.NumberFormat('en', { style: 'currency', currency: 'EUR' })
const priceOf = (minor: number): string => money.format(minor / 100)
const otherMinor = 9_900
const shownPayments = 8
// About a minute, since the service may be starting again on a busy machine. After six seconds the page says so.
const mostLooks = 400
const awayLooks = 40
const lookMs = 150

let intent: Intent | undefined
let calls = 0
let isBusy = false
let hasTwin = true

/** What the buttons send beside the payment. */
const drills: Readonly<Record<string, string>> = {
  drop: 'drop',
  crash: 'exit=before-commit, restart',
  'crash-after': 'exit=after-commit, restart',
  ten: 'slow=300',
}

/** Makes the buttons work. */
export async function startPayment(): Promise<void> {
  write('amount', priceOf(usualMinor))
  for (const button of buttons()) button.addEventListener('click', () => void press(button.dataset['act'] ?? ''))
  await showLedger()
}

function buttons(): HTMLButtonElement[] {
  return [...element('buttons').querySelectorAll('button')]
}

/** Leaves the buttons that make no trouble, and says so. The route without Reprise is not there. */
export function paymentWithoutDrills(): void {
  for (const button of buttons()) button.hidden = ['drop', 'crash', 'crash-after'].includes(button.dataset['act'] ?? '')
  hasTwin = false
  element('plain').hidden = true
  element('trail').ariaBusy = 'false'
  const notice = element('notice')
  notice.hidden = false
  notice.textContent = 'Drills are off here (REPRISE_DRILL): no trouble can be made, and nothing is shown live.'
}

async function press(act: string): Promise<void> {
  if (isBusy) return
  busy(true)
  try {
    const isNew = act !== 'retry' || intent === undefined
    const given = isNew ? begin() : (intent as Intent)
    calls += act === 'ten' ? 10 : act === 'other' ? 2 : 1
    write('calls', String(calls))
    if (hasTwin) await sendPlainly(act, given)
    // What the twin's crash did to the service is no part of the trail.
    if (isNew) clearTrail()
    write('verdict', sayOf(act, await send(act, given, 'keyed')))
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
  write('verdict', 'On its way.')
  return intent
}

// First, and to its end, also where it kills the service: the trail of the other route begins when all is well.
async function sendPlainly(act: string, given: Intent): Promise<void> {
  await send(act, given, 'plain')
  await showLedger()
  for (let look = 0; look < mostLooks && !isFollowed(); look += 1) await pause(lookMs)
}

/** Sends what a button asks for to a route: one call, ten at once, or two with different amounts. */
async function send(act: string, given: Intent, route: Route): Promise<Seen[]> {
  const drill = drills[act]
  if (act === 'ten') return Promise.all(Array.from({ length: 10 }, () => pay(given, { route, drill })))
  const first = await pay(given, { route, drill })
  return act === 'other' ? [first, await pay(given, { route, amountMinor: otherMinor })] : [first]
}

function sayOf(act: string, seen: readonly Seen[]): string {
  if (act === 'ten') return sayOfTen(seen)
  if (act === 'other') {
    const statuses = seen.map((one) => (one === 'nothing' ? 'no answer' : one.status)).join(', then ')
    const bound = `the key is bound to ${priceOf(usualMinor)}, and ${priceOf(otherMinor)} under it is refused`
    return `${statuses}: ${bound}. The mistake shows; it costs nothing.`
  }
  return sayOfOne(seen[0] ?? 'nothing', act !== 'retry')
}

function sayOfTen(seen: readonly Seen[]): string {
  const count = (test: (one: Seen) => boolean): number => seen.filter(test).length
  const refused = count((one) => one !== 'nothing' && one.status === 409)
  const replayed = count((one) => one !== 'nothing' && one.replayed)
  const executed = count((one) => one !== 'nothing' && one.status === 201 && !one.replayed)
  const repeated = replayed > 0 ? `, ${replayed} got its answer` : ''
  const turned = refused > 0 ? `, ${refused} were refused while it was at work (409). Retry gets the answer` : ''
  return `Ten calls at once, one key: ${executed} was carried out${repeated}${turned}.`
}

function sayOfOne(seen: Seen, isFirst: boolean): string {
  if (seen === 'nothing') return 'No answer came. Did it happen? Nobody can tell from here: retry, with the same key.'
  if (seen.replayed && isFirst)
    return 'The answer was lost, the browser repeated the call by itself, and got the answer from memory.'
  if (seen.replayed) return `${seen.status}, from memory: it had happened, and did not happen again.`
  if (seen.status === 201) return '201: the payment was made, by this call.'
  return `${seen.status}: nothing was carried out by this call.`
}

// The service may be starting again: what was said before is said again when it is back.
async function showLedger(): Promise<void> {
  const said = element('verdict').textContent
  for (let look = 0; look < mostLooks; look += 1) {
    const found = (await payments())?.filter(({ account }) => account !== till)
    if (found !== undefined) {
      if (look > awayLooks) write('verdict', said)
      return show(found)
    }
    if (look === awayLooks) write('verdict', 'The service is away. If it stays away: npm start, then retry.')
    await pause(lookMs)
  }
}

function show(found: readonly Listed[]): void {
  const own = found.filter(({ account }) => account === intent?.account)
  const keyed = own.filter((payment) => routeOf(payment) === 'keyed')
  const plain = own.filter((payment) => routeOf(payment) === 'plain')
  const sum = (of: readonly Listed[]): number => of.reduce((all, { amountMinor }) => all + amountMinor, 0)
  writeCount('made', keyed.length)
  write('paid', priceOf(sum(keyed)))
  writeCount('plain-made', plain.length)
  write('plain-paid', priceOf(sum(plain)))
  element('plain').className = `lane ${plain.length > 1 ? 'twice' : ''}`
  if (intent !== undefined) write('plain-verdict', sayOfPlain(plain.length, sum(plain)))
  const rows = found.slice(-shownPayments).reverse()
  const kindOf = (payment: Listed): string =>
    keyed.includes(payment) ? 'current' : plain.length > 1 && plain.includes(payment) ? 'twice' : ''
  element('ledger').replaceChildren(...rows.map((payment) => row(payment, kindOf(payment))))
}

function writeCount(id: string, count: number): void {
  write(id, String(count))
  write(`${id}-word`, count === 1 ? 'payment' : 'payments')
}

function sayOfPlain(count: number, sum: number): string {
  if (count > 1) return `${count} payments for one intent: ${priceOf(sum)} taken, ${priceOf(usualMinor)} wanted.`
  if (count === 1) return 'One payment so far. It reads no key: press Retry, and there are two.'
  return 'No payment yet.'
}

function row(payment: Listed, kind: string): HTMLElement {
  const line = document.createElement('tr')
  line.className = kind
  const route = routeOf(payment) === 'plain' ? 'without' : 'with'
  const cells = [payment.account, priceOf(payment.amountMinor), payment.id.slice(0, 8), route]
  line.append(...cells.map((cell) => made('td', '', cell)))
  return line
}
