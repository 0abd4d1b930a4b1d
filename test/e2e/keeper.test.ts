// A keeper of keys in a real browser, on a page of the sample service: reload, crash, two tabs, the back button, edits.
// Payments are counted at the service.

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { type Browser, type BrowserContext, chromium, type Page, type Route } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findChromium } from '../../tools/servers.mjs'
import { demandServer } from '../servers/missing.js'
import { freshFile, type Service, startService, stop } from './service-process.js'

const module = fileURLToPath(new URL('../../src/intents/index.ts', import.meta.url))
// What a shop would write: a form, a keeper, and one line around its fetch. The drill is what goes wrong on the way.
const script = `
  import { intents } from ${JSON.stringify(module)}
  const keeper = intents({ storage: localStorage })
  globalThis.hasLocks = navigator.locks !== undefined
  const value = (id) => document.querySelector('#' + id).value
  document.querySelector('form').addEventListener('submit', async (event) => {
    event.preventDefault()
    const order = { account: value('account'), amountMinor: Number(value('amount')), currency: 'EUR' }
    const said = document.querySelector('output')
    said.textContent = 'sending'
    try {
      const answer = await keeper.run('pay', new FormData(event.target), async (key) => {
        globalThis.sent = [...(globalThis.sent ?? []), key]
        const answer = await fetch('/payments', {
          method: 'POST',
          headers: {
            'authorization': 'Bearer ' + value('account'),
            'content-type': 'application/json',
            'idempotency-key': '"' + key + '"',
            ...(value('drill') && { drill: value('drill') }),
          },
          body: JSON.stringify(order),
        })
        return globalThis.readsBody ? { body: await answer.text() } : answer
      })
      said.textContent = globalThis.readsBody ? answer.body : answer.status + (answer.headers.get('idempotent-replayed') ? ' from memory' : '')
    } catch {
      said.textContent = 'no answer'
    }
  })`
const html = `<!doctype html><title>Pay</title><form>
  <input id="account" name="account"><input id="amount" name="amount" value="1200"><input id="drill"><button>Pay</button></form>
  <output></output><script type="module" src="/keeper.js"></script>`

let browser: Browser
let service: Service
let bundle: string

beforeAll(async () => {
  demandServer('Chromium')
  const built = await build({
    stdin: { contents: script, resolveDir: fileURLToPath(new URL('.', import.meta.url)) },
    bundle: true,
    format: 'esm',
    write: false,
  })
  bundle = built.outputFiles[0]?.text ?? ''
  service = await startService({ DATABASE_URL: freshFile() })
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  browser = await chromium.launch({ executablePath: findChromium() ?? 'chromium', args })
})
afterAll(async () => {
  await browser?.close()
  expect((await stop(service)).code).toBe(0)
})

/** A browser of somebody new, in which the service has a page with a keeper. */
async function person(): Promise<BrowserContext> {
  const context = await browser.newContext()
  context.setDefaultTimeout(120_000)
  await context.route('**/keeper.html', (route) => route.fulfill({ contentType: 'text/html', body: html }))
  await context.route('**/keeper.js', (route) => route.fulfill({ contentType: 'text/javascript', body: bundle }))
  return context
}

let accounts = 0
const freshAccount = () => `keeper-${++accounts}`

async function open(context: BrowserContext): Promise<Page> {
  const page = await context.newPage()
  await page.goto(`${service.url}/keeper.html`)
  return page
}

/** Fills the form and presses the button; the answer comes later. */
async function press(page: Page, account: string, { amount = 1200, drill = '' } = {}): Promise<void> {
  await page.fill('#account', account)
  await page.fill('#amount', String(amount))
  await page.fill('#drill', drill)
  await page.click('button')
}

/**
 * Loses the next answer: the service has acted, and the page hears nothing. Not by a connection that the service cuts:
 * on one that it had used before Chromium sends the POST once more by itself, as is shown below.
 */
async function losesAnswer(page: Page): Promise<void> {
  const lose = async (route: Route) => {
    await route.fetch()
    await route.abort('connectionreset')
  }
  await page.route('**/payments', lose, { times: 1 })
}

/** Presses the button, and waits for what the page says then. */
async function pays(page: Page, account: string, order: { amount?: number; drill?: string } = {}): Promise<string> {
  await press(page, account, order)
  await expect.poll(() => page.textContent('output'), { timeout: 120_000 }).not.toMatch(/^(sending)?$/)
  return (await page.textContent('output')) ?? ''
}

const keptKeys = (page: Page) => page.evaluate<number>('Object.keys(localStorage).length')

/** The amounts that an account has paid, by what the service has stored. */
async function paid(account: string): Promise<number[]> {
  const answer = await fetch(`${service.url}/payments`, { headers: { authorization: `Bearer ${account}` } })
  const payments = ((await answer.json()) as { items: { amountMinor: number }[] }).items
  return payments.map(({ amountMinor }) => amountMinor).sort((a, b) => a - b)
}

describe('one payment', () => {
  it('whose answer is lost stays one after a reload; after its success the same order is a new one', async () => {
    const account = freshAccount()
    const page = await open(await person())
    await losesAnswer(page)
    expect(await pays(page, account)).toBe('no answer')
    expect(await paid(account)).toEqual([1200])
    expect(await keptKeys(page)).toBe(1)
    await page.reload()
    expect(await pays(page, account)).toBe('201 from memory')
    expect(await paid(account)).toEqual([1200])
    expect(await keptKeys(page)).toBe(0)
    expect(await pays(page, account)).toBe('201')
    expect(await paid(account)).toEqual([1200, 1200])
  })

  it('whose tab crashes while it is sent stays one in the next tab', async () => {
    const account = freshAccount()
    const context = await person()
    const page = await open(context)
    await press(page, account, { drill: 'slow=500' })
    await expect.poll(() => page.evaluate(() => (globalThis as { sent?: string[] }).sent?.length)).toBe(1)
    const crashed = page.waitForEvent('crash')
    page.goto('chrome://crash').catch(() => undefined)
    await crashed
    const next = await open(context)
    await expect.poll(() => pays(next, account), { timeout: 120_000 }).toMatch(/^201/)
    expect(await paid(account)).toEqual([1200])
    expect(await keptKeys(next)).toBe(0)
  })

  it('stays one where the user goes on to another page before the answer, and comes back', async () => {
    const account = freshAccount()
    const page = await open(await person())
    await losesAnswer(page)
    expect(await pays(page, account)).toBe('no answer')
    expect(await paid(account)).toEqual([1200])
    await page.goto(service.url)
    await page.goBack()
    expect(page.url()).toContain('keeper.html')
    expect(await pays(page, account)).toBe('201 from memory')
    expect(await paid(account)).toEqual([1200])
  })

  it('in two tabs at once has one key', async () => {
    const context = await person()
    const tabs = [await open(context), await open(context)]
    expect(await tabs[0]?.evaluate(() => (globalThis as { hasLocks?: boolean }).hasLocks)).toBe(true)
    // Neither request goes on before both are there: whichever tab is first, the other has its key before the answer.
    let held: (() => void)[] = []
    await context.route('**/payments', async (route) => {
      await new Promise<void>((resolve) => {
        held.push(resolve)
        if (held.length === tabs.length) for (const go of held) go()
      })
      await route.continue()
    })
    for (let round = 0; round < 10; round += 1) {
      held = []
      const account = freshAccount()
      const said = await Promise.all(tabs.map((tab) => pays(tab, account, { drill: 'slow=100' })))
      // The other is refused while the first is at work, or told from memory.
      expect(said.filter((answer) => answer === '201')).toHaveLength(1)
      const keys = await Promise.all(
        tabs.map((tab) => tab.evaluate(() => (globalThis as { sent?: string[] }).sent?.at(-1))),
      )
      expect(keys[0]).toBe(keys[1])
      expect(await paid(account)).toEqual([1200])
    }
  })

  it('that the user edits is another one, and the same again when the edit is undone', async () => {
    const account = freshAccount()
    const page = await open(await person())
    await losesAnswer(page)
    expect(await pays(page, account)).toBe('no answer')
    await losesAnswer(page)
    expect(await pays(page, account, { amount: 1300 })).toBe('no answer')
    expect(await paid(account)).toEqual([1200, 1300])
    expect(await pays(page, account, { amount: 1200 })).toBe('201 from memory')
    expect(await pays(page, account, { amount: 1300 })).toBe('201 from memory')
    expect(await paid(account)).toEqual([1200, 1300])
    expect(await keptKeys(page)).toBe(0)
  })

  it('that the service refuses for good is over, and one that it could not carry out is not', async () => {
    const account = freshAccount()
    const page = await open(await person())
    expect(await pays(page, account, { amount: 1_000_001 })).toBe('402')
    expect(await keptKeys(page)).toBe(0)
    expect(await pays(page, account, { drill: 'fail=503' })).toBe('503')
    expect(await keptKeys(page)).toBe(1)
    expect(await pays(page, account)).toBe('201')
    expect(await paid(account)).toEqual([1200])
  })

  it('whose answer the page hands on as a mere value keeps its key: a failure is such a value too', async () => {
    const account = freshAccount()
    const page = await open(await person())
    await page.evaluate('globalThis.readsBody = true')
    expect(await pays(page, account, { drill: 'fail=503' })).toContain('503')
    expect(await keptKeys(page)).toBe(1)
    expect(await pays(page, account)).toContain('1200')
    expect(await pays(page, account)).toContain('1200')
    expect(await paid(account)).toEqual([1200])
    expect(new Set(await page.evaluate(() => (globalThis as { sent?: string[] }).sent)).size).toBe(1)
  })
})

describe('a browser by itself', () => {
  /** A server that loses the answer to the first POST, and what it got. */
  async function losing(keepsConnections: boolean) {
    const keys: unknown[] = []
    const server = createServer((request, response) => {
      if (!keepsConnections) response.setHeader('connection', 'close')
      if (request.method !== 'POST') return void response.setHeader('content-type', 'text/html').end(bare)
      request.resume().on('end', () => {
        keys.push(request.headers['idempotency-key'])
        if (keys.length === 1) request.socket.destroy()
        else response.end('made')
      })
    }).listen(0, '127.0.0.1')
    server.keepAliveTimeout = 0
    await once(server, 'listening')
    return { server, keys, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
  }

  // Without an icon of its own a page asks for one, on a further connection.
  const bare = '<!doctype html><link rel="icon" href="data:,"><title>A page</title>'
  const post = `fetch('/', { method: 'POST', headers: { 'idempotency-key': 'k-1' }, body: '{}' })
    .then((answer) => answer.text(), String)`

  it.each([
    ['sends a POST once more whose connection it had used before, with the same key', true, ['k-1', 'k-1'], 'made'],
    ['sends one on a new connection once', false, ['k-1'], 'TypeError: Failed to fetch'],
  ] as const)('%s', async (_title, keepsConnections, expected, says) => {
    const { server, keys, url } = await losing(keepsConnections)
    try {
      const page = await (await browser.newContext()).newPage()
      await page.goto(url)
      expect([await page.evaluate<string>(post), keys]).toEqual([says, expected])
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })
})
