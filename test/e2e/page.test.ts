// The page of the sample service in a real browser: what a newcomer presses, and what he sees.

import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findChromium } from '../../tools/servers.mjs'
import { demandServer } from '../servers/missing.js'
import { freshFile, type Service, startService, stop } from './service-process.js'

// Kept out of git, to be looked at.
const screenshots = fileURLToPath(new URL('../../.cache/screenshots/', import.meta.url))
const slow = { timeout: 120_000 }
// A name like that of a machine in the same house: over plain HTTP a browser offers less there than on loopback.
const elsewhere = 'phone.test'

let browser: Browser
let service: Service

beforeAll(async () => {
  demandServer('Chromium')
  mkdirSync(screenshots, { recursive: true })
  service = await startService({ DATABASE_URL: freshFile() })
  // As root, Chromium has no sandbox to offer.
  const args = [
    `--host-resolver-rules=MAP ${elsewhere} 127.0.0.1`,
    ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
  ]
  browser = await chromium.launch({ executablePath: findChromium() ?? 'chromium', args })
})
afterAll(async () => {
  await browser?.close()
  expect((await stop(service)).code).toBe(0)
})

/** Opens the page as somebody new, who looks until it follows the service; errors of its script are kept. */
async function open(options: BrowserContextOptions = {}, url = service.url): Promise<{ page: Page; errors: Error[] }> {
  const page = await (await browser.newContext(options)).newPage()
  const errors: Error[] = []
  page.on('pageerror', (error) => errors.push(error))
  page.setDefaultTimeout(slow.timeout)
  await page.goto(url)
  await page.locator('#trail[aria-busy="false"]').waitFor({ state: 'attached' })
  return { page, errors }
}

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const reads = (page: Page, id: string, text: string | RegExp) => page.locator(`#${id}`, { hasText: text }).waitFor()
/** The lines of the trail, each as the words of its chips. */
const trail = (page: Page) =>
  page
    .locator('#trail li')
    .evaluateAll((lines) =>
      lines.map((line) => [...line.children].map(({ textContent }) => textContent).filter((text) => text !== '')),
    )
const wordFor = (payments: number) => (payments === 1 ? /^payment$/ : /^payments$/)
/** Waits for what the route without Reprise made. */
const isMadePlainly = async (page: Page, payments: number, paid: string) => {
  await reads(page, 'plain-made', new RegExp(`^${payments}$`))
  await reads(page, 'plain-made-word', wordFor(payments))
  await reads(page, 'plain-paid', paid)
}
const isMade = async (page: Page, payments: number) => {
  await reads(page, 'made', new RegExp(`^${payments}$`))
  await reads(page, 'made-word', wordFor(payments))
  await expect.poll(() => page.locator('#ledger tr.current').count(), slow).toBe(payments)
}

describe('one payment', () => {
  it('is sent, and sent again, and is one', async () => {
    const { page, errors } = await open()
    expect(await page.getByRole('button', { name: 'Retry' }).isDisabled()).toBe(true)
    await press(page, 'Send')
    await reads(page, 'verdict', '201: the payment was made, by this call.')
    await isMade(page, 1)
    await isMadePlainly(page, 1, '€12.00')
    await reads(page, 'plain-verdict', 'press Retry, and there are two')
    await press(page, 'Retry')
    await reads(page, 'verdict', 'from memory')
    await isMade(page, 1)
    await isMadePlainly(page, 2, '€24.00')
    await reads(page, 'paid', '€12.00')
    await reads(page, 'plain-verdict', '2 payments for one intent: €24.00 taken, €12.00 wanted.')
    expect(await page.locator('#ledger tr.twice').count()).toBe(2)
    await page.screenshot({ path: `${screenshots}two-beside-one.png`, fullPage: true })
    const told = [
      ['call 1', 'claimed', 'committed', '201'],
      ['call 2', 'replayed', '201'],
    ]
    await expect.poll(() => trail(page), slow).toEqual(told)
    expect(errors).toEqual([])
  })

  it('whose answer is dropped had happened', async () => {
    const { page } = await open()
    await press(page, 'Drop the answer')
    await reads(page, 'verdict', 'No answer came.')
    await isMade(page, 1)
    await press(page, 'Retry')
    await reads(page, 'verdict', 'from memory')
    await isMade(page, 1)
    const told = [
      ['call 1', 'claimed', 'committed', 'answer dropped'],
      ['call 2', 'replayed', '201'],
    ]
    await expect.poll(() => trail(page), slow).toEqual(told)
    await isMadePlainly(page, 2, '€24.00')
  })

  it('whose process is killed after COMMIT had happened; the retry gets its answer, and a plain route pays again', async () => {
    const { page, errors } = await open()
    await press(page, 'Crash after COMMIT')
    await reads(page, 'verdict', 'No answer came.')
    await isMade(page, 1)
    await isMadePlainly(page, 1, '€12.00')
    await expect
      .poll(() => trail(page), slow)
      .toEqual([['call 1', 'claimed', 'process killed'], ['the service is back']])
    await press(page, 'Retry')
    await reads(page, 'verdict', 'from memory')
    await isMade(page, 1)
    await isMadePlainly(page, 2, '€24.00')
    await expect.poll(async () => (await trail(page)).at(-1), slow).toEqual(['call 2', 'replayed', '201'])
    expect(errors).toEqual([])
  })

  it('under the same key with another amount is refused; a plain route takes both', async () => {
    const { page, errors } = await open({ colorScheme: 'dark' })
    await press(page, 'Same key, other amount')
    await reads(page, 'verdict', '201, then 422: the key is bound to €12.00, and €99.00 under it is refused')
    await reads(page, 'calls', '2')
    await isMade(page, 1)
    await isMadePlainly(page, 2, '€111.00')
    const told = [
      ['call 1', 'claimed', 'committed', '201'],
      ['call 2', 'refused: key-reused', '422'],
    ]
    await expect.poll(() => trail(page), slow).toEqual(told)
    await page.screenshot({ path: `${screenshots}other-amount-dark.png`, fullPage: true })
    expect(errors).toEqual([])
  })

  it('whose process is killed before COMMIT had not happened; the page goes on, and the retry makes it', async () => {
    const { page, errors } = await open()
    await press(page, 'Crash before COMMIT')
    await reads(page, 'verdict', 'No answer came.')
    await isMade(page, 0)
    await expect
      .poll(() => trail(page), slow)
      .toEqual([['call 1', 'claimed', 'process killed'], ['the service is back']])
    await press(page, 'Retry')
    await reads(page, 'verdict', 'by this call')
    await isMade(page, 1)
    // Nothing had been committed there either: the plain route is right as well, by luck.
    await isMadePlainly(page, 1, '€12.00')
    await expect.poll(async () => (await trail(page)).at(-1), slow).toEqual(['call 2', 'claimed', 'committed', '201'])
    await page.screenshot({ path: `${screenshots}crash.png`, fullPage: true })
    expect(errors).toEqual([])
  })

  it('sent ten times at once is carried out once; the others are refused or told', async () => {
    const { page } = await open()
    await press(page, 'Ten at once')
    await reads(page, 'verdict', 'Ten calls at once, one key: 1 was carried out')
    await reads(page, 'calls', '10')
    await isMade(page, 1)
    await isMadePlainly(page, 10, '€120.00')
    await expect.poll(async () => (await trail(page)).length, slow).toBe(10)
    const chips = (await trail(page)).map((line) => line[1])
    expect(chips.filter((chip) => chip === 'claimed')).toHaveLength(1)
    expect(chips).toContain('refused: in-flight')
    await page.screenshot({ path: `${screenshots}ten.png`, fullPage: true })
  })

  it('is made with the keyboard alone', async () => {
    const { page } = await open()
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Send')
    await page.keyboard.press('Enter')
    await isMade(page, 1)
    for (let tab = 0; tab < 6; tab += 1) await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Retry')
    await page.keyboard.press('Space')
    await reads(page, 'verdict', 'from memory')
  })
})

describe('one receipt', () => {
  /** Waits until what a button asked for is over, and reads the four counts. */
  const counts = async (page: Page) => {
    await page.locator('#receipt[aria-busy="false"]').waitFor()
    const read = (id: string) => page.locator(`#receipt-${id}`).textContent()
    const [payments, wire, dropped, receipts] = await Promise.all(['payments', 'wire', 'dropped', 'receipts'].map(read))
    return { payments, wire: Number(wire), dropped: Number(dropped), receipts }
  }
  /** The chips of the events' lines. */
  const way = (page: Page) =>
    page
      .locator('#way li')
      .evaluateAll((lines) => lines.map((line) => [...line.children].map(({ textContent }) => textContent)))

  it('is written for a payment, and one more for one more', async () => {
    const { page, errors } = await open()
    expect(await page.getByRole('button', { name: 'Redrive' }).isDisabled()).toBe(true)
    for (const payments of ['1', '2']) {
      await press(page, 'Pay')
      await reads(page, 'receipt-payments', payments)
      await reads(page, 'receipt-verdict', 'One event, one receipt.')
      expect(await counts(page)).toMatchObject({ payments, receipts: payments })
    }
    await expect.poll(() => way(page), slow).toContainEqual(['payment 2', 'on the wire', 'receipt'])
    // The other story is not told of it.
    expect([await trail(page), await page.locator('#ledger tr').count()]).toEqual([[], 0])
    expect(errors).toEqual([])
  })

  it('is one where the relay is killed after it published: the next one publishes again', async () => {
    const { page, errors } = await open()
    await press(page, 'Kill the relay')
    await reads(page, 'receipt-verdict', 'was killed before it told the store')
    const { wire, dropped, ...rest } = await counts(page)
    expect(rest).toEqual({ payments: '1', receipts: '1' })
    expect([wire > dropped, dropped > 0]).toEqual([true, true])
    const [line = []] = await way(page)
    expect(line).toEqual(expect.arrayContaining(['relay killed', 'next relay']))
    expect(line.indexOf('receipt')).toBeLessThan(line.indexOf('relay killed'))
    expect(line.indexOf('relay killed')).toBeLessThan(line.indexOf('duplicate dropped'))
    await page.screenshot({ path: `${screenshots}relay-killed.png`, fullPage: true })
    expect(errors).toEqual([])
  })

  it('is one where the event is delivered twice', async () => {
    const { page } = await open()
    await press(page, 'Deliver twice')
    await reads(page, 'receipt-verdict', 'The second was recognised and dropped')
    const { wire, dropped, ...rest } = await counts(page)
    expect([rest, wire > dropped, dropped > 0]).toEqual([{ payments: '1', receipts: '1' }, true, true])
  })

  it('waits behind a poison message, whose letter says why, and is written after the redrive', async () => {
    const { page, errors } = await open({ colorScheme: 'dark' })
    await press(page, 'Poison')
    await reads(page, 'receipt-verdict', 'It is a dead letter')
    await reads(page, 'letter', 'Currency code is required')
    await reads(page, 'letter', 'The till is parked: nothing is behind it yet.')
    await counts(page)
    await press(page, 'Pay')
    await reads(page, 'receipt-verdict', 'waits behind the dead letter')
    await reads(page, 'letter', 'The till is parked: 1 behind it.')
    expect(await counts(page)).toMatchObject({ payments: '2', receipts: '0' })
    await page.screenshot({ path: `${screenshots}parked-dark.png`, fullPage: true })
    await press(page, 'Redrive')
    await reads(page, 'receipt-verdict', 'Mended, and sent again')
    expect(await counts(page)).toMatchObject({ payments: '2', receipts: '2' })
    expect(await page.locator('#letter').isVisible()).toBe(false)
    expect(await page.getByRole('button', { name: 'Redrive' }).isDisabled()).toBe(true)
    // In their order: the one that was poison first.
    const lines = await expect
      .poll(() => way(page), slow)
      .toHaveLength(2)
      .then(() => way(page))
    expect(lines.map((line) => [line[0], line.at(-1)])).toEqual([
      ['payment 1', 'receipt'],
      ['payment 2', 'receipt'],
    ])
    expect(errors).toEqual([])
  })

  it('is asked for with the keyboard alone', async () => {
    const { page } = await open()
    await page.getByRole('button', { name: 'Pay', exact: true }).focus()
    await page.keyboard.press('Enter')
    await reads(page, 'receipt-verdict', 'One event, one receipt.')
    for (let tab = 0; tab < 2; tab += 1) await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Deliver twice')
    await page.keyboard.press('Space')
    await reads(page, 'receipt-verdict', 'recognised and dropped')
    expect(await counts(page)).toMatchObject({ payments: '2', receipts: '2' })
  })
})

describe('the storm', () => {
  const set = (page: Page, id: string, value: number) => page.locator(`#${id}`).fill(String(value))
  const attribute = (page: Page, id: string, name: string) => page.locator(`#${id}`).getAttribute(name)
  const arrows = (page: Page) =>
    page.locator('#arrows li').evaluateAll((found) => found.map((arrow) => arrow.getAttribute('class')))

  it('without a budget stays after its trigger, its retries green while the service knows keys', async () => {
    const { page, errors } = await open()
    await reads(page, 'badge', 'METASTABLE')
    expect(await attribute(page, 'chart-repeats', 'class')).toBe('safe')
    await reads(page, 'offered-value', /^\d{4} \/ s · [3-9]\.\d × capacity$/)
    const [level = 0, most] = await page.locator('#offered').evaluate((found) => {
      const { value, max } = found as unknown as { value: number; max: number }
      return [value, max]
    })
    expect(level).toBeGreaterThan(3)
    // The scale reaches what is reached, and no further than the next whole number.
    expect(most).toBeGreaterThanOrEqual(level)
    expect(most).toBeLessThanOrEqual(5)
    await reads(page, 'bucket-value', 'no budget')
    await reads(page, 'bucket-word', 'OFF: no cap on retries')
    await reads(page, 'summary', /[1-9][\d,]* repeats recognised, nobody charged twice/)
    // Safe, but nobody is answered: neither the arrows nor the plot may look well.
    await reads(page, 'service-state', 'flatlined')
    await reads(page, 'service-cause', 'trigger: over')
    await reads(page, 'summary', 'Retries that are safe bring no service back: try it with the budget.')
    await expect.poll(() => arrows(page), slow).toEqual(['first vain', ...Array(5).fill('safe vain')])
    const colours = await page.evaluate(
      `['.arrows .safe.vain', '#chart-vain', '#chart-repeats'].map((each) => {
        const style = getComputedStyle(document.querySelector(each))
        return each.startsWith('#') ? style.fill : style.borderBottomColor
      })`,
    )
    const [arrow, vain, safe] = colours as string[]
    expect([arrow === vain, vain === safe]).toEqual([true, false])
    expect(await attribute(page, 'chart-vain', 'd')).not.toBe(await attribute(page, 'chart-first', 'd'))
    const axes = await page.locator('#y-axis span, #x-axis span').allTextContents()
    expect(axes).toEqual(expect.arrayContaining(['0', '1,000', '4,000', '5,000', '0 s', '150 s']))
    await page.screenshot({ path: `${screenshots}metastable.png`, fullPage: true })
    expect(errors).toEqual([])
  })

  it('charges twice, in red, where the service knows no keys', async () => {
    const { page } = await open({ colorScheme: 'dark' })
    await page.getByLabel('The service knows keys').uncheck()
    await reads(page, 'badge', 'METASTABLE')
    expect(await attribute(page, 'chart-repeats', 'class')).toBe('unsafe')
    await reads(page, 'summary', /[1-9][\d,]* charged twice/)
    await reads(page, 'method-kind', 'not idempotent')
    await expect.poll(() => arrows(page), slow).toEqual(['first vain', ...Array(5).fill('unsafe vain')])
    // A greeting may be said twice, with or without keys.
    await page.getByLabel('greet').check()
    expect(await page.getByLabel('The service knows keys').isDisabled()).toBe(true)
    await reads(page, 'method-call', 'greet("Ada")')
    await reads(page, 'method-kind', 'idempotent')
    expect(await attribute(page, 'chart-repeats', 'class')).toBe('safe')
    await reads(page, 'badge', 'METASTABLE')
    await reads(page, 'summary', /[1-9][\d,]* greeted again, which changes nothing/)
    await page.getByLabel('charge').check()
    await reads(page, 'badge', 'METASTABLE')
    await page.screenshot({ path: `${screenshots}unsafe-dark.png`, fullPage: true })
  })

  it('ends with a budget, whose bucket runs low and fills again', async () => {
    const { page } = await open()
    await page.getByLabel('Budget').check()
    await reads(page, 'bucket-value', /^[0-4]\.\d of 10$/)
    await reads(page, 'bucket-word', 'retries PAUSE')
    await reads(page, 'badge', 'RECOVERED')
    await reads(page, 'bucket-value', '10.0 of 10')
    await reads(page, 'bucket-word', 'retries flow')
    await reads(page, 'service-state', 'well')
    await reads(page, 'offered-word', 'within capacity')
    expect(await arrows(page)).toEqual(['first', ...Array(5).fill('unsent')])
    await page.screenshot({ path: `${screenshots}recovered.png`, fullPage: true })
  })

  it('does not begin without a trigger, without retries, or with capacity enough', async () => {
    const { page } = await open()
    await set(page, 'trigger', 0) // each change begins a new run, whose badge says nothing at first
    await reads(page, 'trigger-value', '0 s')
    await reads(page, 'badge', 'RECOVERED')
    await set(page, 'trigger', 10)
    await set(page, 'repeats', 0)
    await reads(page, 'repeats-value', '0')
    await reads(page, 'badge', 'RECOVERED')
    await set(page, 'repeats', 5)
    await set(page, 'capacity', 3000)
    await reads(page, 'capacity-value', '3000 / s')
    await reads(page, 'badge', 'RECOVERED')
  })
})

describe('the page', () => {
  it('fits a phone: nothing is wider than the screen, and what is pressed is large enough', async () => {
    const { page } = await open({ viewport: { width: 360, height: 740 }, hasTouch: true })
    await press(page, 'Ten at once')
    await isMade(page, 1)
    await press(page, 'Poison')
    await reads(page, 'letter', 'Dead letter')
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360)
    const heights = await page
      .getByRole('button')
      .evaluateAll((buttons) => buttons.map((button) => button.getBoundingClientRect().height))
    expect(Math.min(...heights)).toBeGreaterThanOrEqual(44)
    await page.screenshot({ path: `${screenshots}phone.png`, fullPage: true })
  })

  it('leads to the guides and to the lines behind each button', async () => {
    const { page } = await open()
    const links = await page
      .locator('.behind a')
      .evaluateAll((found) => found.map((link) => link.getAttribute('href') ?? ''))
    expect(links.length).toBeGreaterThan(10)
    for (const link of links) {
      const [path = '', anchor] = link.split('#')
      const response = await fetch(service.url + path)
      expect([link, response.status]).toEqual([link, 200])
      const text = await response.text()
      if (anchor !== undefined) expect([link, text.includes(`<span id="${anchor}">`)]).toEqual([link, true])
    }
    await page.locator('.behind summary').first().press('Enter')
    await page.getByRole('link', { name: 'plainRoute' }).click()
    const lines = await page.locator('pre :target').textContent()
    expect(lines).toContain('await ledger.add(tx, principal, payment)')
    expect(lines?.split('\n').length).toBeLessThan(40)
    await page.screenshot({ path: `${screenshots}lines.png` })
    await page.getByRole('link', { name: 'The page' }).click()
    await reads(page, 'badge', /UNTROUBLED|STORM|DOWN|METASTABLE/)
  })

  it('says so where no trouble can be made, and pays all the same', async () => {
    const calm = await startService({ DATABASE_URL: freshFile(), REPRISE_DRILL: '0' })
    const { page } = await open({}, calm.url)
    await reads(page, 'notice', 'Drills are off here')
    expect(await page.locator('#plain').isVisible()).toBe(false)
    for (const name of [
      'Drop the answer',
      'Crash after COMMIT',
      'Kill the relay',
      'Deliver twice',
      'Poison',
      'Redrive',
    ]) {
      expect(await page.getByRole('button', { name }).isVisible()).toBe(false)
    }
    await press(page, 'Send')
    await isMade(page, 1)
    await press(page, 'Pay')
    await reads(page, 'receipt-verdict', 'One event, one receipt.')
    expect((await stop(calm)).code).toBe(0)
  })

  it('works over plain HTTP from another machine, where a browser keeps some functions back', async () => {
    const { page, errors } = await open({}, service.url.replace('127.0.0.1', elsewhere))
    expect(await page.evaluate('[isSecureContext, typeof crypto.randomUUID]')).toEqual([false, 'undefined'])
    await press(page, 'Send')
    await reads(page, 'verdict', '201: the payment was made, by this call.')
    await press(page, 'Retry')
    await reads(page, 'verdict', 'from memory')
    await isMade(page, 1)
    await reads(page, 'badge', /UNTROUBLED|STORM|DOWN|METASTABLE/)
    expect(errors).toEqual([])
  })

  it('loads nothing from elsewhere, and is small', async () => {
    const page = await (await browser.newContext()).newPage()
    const asked: string[] = []
    let bytes = 0
    page.on('response', async (response) => {
      asked.push(new URL(response.url()).origin)
      if (/(\/|\.css|\.js)$/.test(response.url())) bytes += (await response.body()).length
    })
    await page.goto(service.url)
    await reads(page, 'badge', /UNTROUBLED|STORM|DOWN|METASTABLE/)
    expect(new Set(asked)).toEqual(new Set([service.url]))
    expect(bytes).toBeGreaterThan(5_000)
    expect(bytes).toBeLessThan(100_000)
  })
})
