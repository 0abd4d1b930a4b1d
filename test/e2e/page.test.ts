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
const isMade = async (page: Page, payments: number) => {
  await reads(page, 'made', new RegExp(`^${payments}$`))
  await expect.poll(() => page.locator('#ledger tr.current').count(), slow).toBe(payments)
}

describe('one payment', () => {
  it('is sent, and sent again, and is one', async () => {
    const { page, errors } = await open()
    expect(await page.getByRole('button', { name: 'Retry' }).isDisabled()).toBe(true)
    await press(page, 'Send')
    await reads(page, 'verdict', '201: the payment was made, by this call.')
    await isMade(page, 1)
    await press(page, 'Retry')
    await reads(page, 'verdict', 'from memory')
    await isMade(page, 1)
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
    for (let tab = 0; tab < 4; tab += 1) await page.keyboard.press('Tab')
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

  it('without a budget stays after its trigger, its retries green while the service knows keys', async () => {
    const { page, errors } = await open()
    await reads(page, 'badge', 'METASTABLE')
    expect(await attribute(page, 'chart-repeats', 'class')).toBe('safe')
    await reads(page, 'offered-value', /^\d{4} \/ s · [3-9]\.\d × capacity$/)
    const level = await page.locator('#offered').evaluate((meter) => (meter as unknown as { value: number }).value)
    expect(level).toBeGreaterThan(3)
    await reads(page, 'bucket-value', 'no budget')
    await reads(page, 'summary', /[1-9][\d,]* repeats recognised, nobody charged twice/)
    await page.screenshot({ path: `${screenshots}metastable.png`, fullPage: true })
    expect(errors).toEqual([])
  })

  it('charges twice, in red, where the service knows no keys', async () => {
    const { page } = await open({ colorScheme: 'dark' })
    await page.getByLabel('The service knows keys').uncheck()
    await reads(page, 'badge', 'METASTABLE')
    expect(await attribute(page, 'chart-repeats', 'class')).toBe('unsafe')
    await reads(page, 'summary', /[1-9][\d,]* charged twice/)
    await page.screenshot({ path: `${screenshots}unsafe-dark.png`, fullPage: true })
  })

  it('ends with a budget, whose bucket runs low and fills again', async () => {
    const { page } = await open()
    await page.getByLabel('Budget').check()
    await reads(page, 'bucket-value', /^[0-4]\.\d of 10$/)
    await reads(page, 'badge', 'RECOVERED')
    await reads(page, 'bucket-value', '10.0 of 10')
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

  it('says so where no trouble can be made, and pays all the same', async () => {
    const calm = await startService({ DATABASE_URL: freshFile(), REPRISE_DRILL: '0' })
    const { page } = await open({}, calm.url)
    await reads(page, 'notice', 'Drills are off here')
    for (const name of ['Drop the answer', 'Kill the relay', 'Deliver twice', 'Poison', 'Redrive']) {
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
