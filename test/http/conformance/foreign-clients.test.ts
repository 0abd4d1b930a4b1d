// Clients that nobody here wrote, against a route of ours, while answers are lost, their own first call is at work, and
// the store is away: one effect each time, and what their users see is the table of docs/reference/foreign-clients.md.

import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import type { Problem } from '../../../src/http/core/index.js'
import { AnswerError, idempotent, reply } from '../../../src/http/node/index.js'
import { mintKey } from '../../../src/identity/index.js'
import { inTime, sleep, waitFor } from '../../../src/kernel/index.js'
import { memory } from '../../../src/stores/memory/index.js'
import { ensureInstalled } from '../../../tools/install.mjs'
import { withTable } from '../../docs-tables.js'
import { root } from '../../markdown.js'
import { listening } from '../subject/listening.js'

const folder = join(root, 'bench', 'foreign-clients')
const versions = (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { devDependencies: object })
  .devDependencies as Readonly<Record<string, string>>
const names = ['stripe', 'openai', 'got', 'ky', 'axios-retry', 'undici'] as const

/** A member `error`, which is what the SDK of Stripe looks for. */
function asStripe({ name, status, detail, retryable }: Problem) {
  const type = name.startsWith('key-') ? 'idempotency_error' : status < 500 ? 'invalid_request_error' : 'api_error'
  return reply(status, { error: { type, code: name, message: detail } }, { 'stripe-should-retry': String(retryable) })
}

type Fault = 'none' | 'drop' | 'at-work' | 'away' | 'reused'

interface Cell {
  readonly url: string
  readonly key: string
  /** What the service has answered, in order; 0: the connection was cut in place of an answer. */
  readonly answers: readonly number[]
  effects(): number
}

/** A service of its own, in which one thing goes wrong with the first call. */
async function serviceWith(fault: Fault, options: { duplicates?: 'wait'; refusal?: typeof asStripe }): Promise<Cell> {
  const db = memory({ name: 'shop', deadline: '60s', bodyLimit: '60s' })
  db.table('charge', { unique: [['id']] })
  const answers: number[] = []
  let calls = 0
  let runs = 0
  let letGo = (): void => undefined
  const repeated = waitFor<void>({}, (resolve) => {
    letGo = () => void resolve()
  })
  const route = idempotent(
    db,
    { name: 'charges', principal: () => 'ada', wait: '30s', ...options },
    async ({ tx, native }) => {
      runs += 1
      if (fault === 'away' && runs === 1) throw new AnswerError(reply(503, 'not now', { 'retry-after': '1' }))
      if (fault === 'at-work') {
        native.socket.destroy()
        // Its own repeat has been told so, or waits for it.
        await inTime({ limitMs: 250_000 }, repeated)
      }
      await tx.insertOnce('charge', { id: mintKey() }, ['id'])
      return reply(201, { id: 'c-1', object: 'charge' })
    },
  )
  const listener = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    calls += 1
    if (fault === 'drop' && calls === 1) {
      response.end = () => {
        answers.push(0)
        request.socket.destroy()
        return response
      }
    }
    if (fault === 'at-work' && calls === 2 && options.duplicates === 'wait') void sleep(100).then(letGo)
    response.on('finish', () => {
      answers.push(response.statusCode)
      if (response.statusCode === 409) letGo()
    })
    await route(request, response)
  }
  const server = createServer((request, response) => void listener(request, response))
  onTestFinished(() => {
    letGo()
    server.closeAllConnections()
    server.close()
  })
  const { url } = await listening(server)
  const key = mintKey()
  if (fault === 'reused') {
    const headers = { 'idempotency-key': key }
    expect((await fetch(url, { method: 'POST', headers, body: 'something else' })).status).toBe(201)
    answers.length = 0
  }
  return { url, key, answers, effects: () => db.rows('charge').length }
}

const columns: readonly (readonly [title: string, ...of: Parameters<typeof serviceWith>])[] = [
  ['nothing goes wrong', 'none', {}],
  ['the answer is lost', 'drop', {}],
  ['its first call is still at work', 'at-work', {}],
  ["the same, `duplicates: 'wait'`", 'at-work', { duplicates: 'wait' }],
  ['503 once', 'away', {}],
  ['422, the key was reused', 'reused', {}],
  ['the same, in Stripe’s shape', 'reused', { refusal: asStripe }],
]

type Shown = { readonly status: number } | { readonly failed: number | string }

beforeAll(() => ensureInstalled(root, folder))

it('clients of others have one effect in every fault, and show what the page says', async () => {
  const cells = await Promise.all(
    names.flatMap((client) =>
      columns.map(async ([, fault, options]) => ({ client, fault, ...(await serviceWith(fault, options)) })),
    ),
  )
  const asked = JSON.stringify(cells.map(({ client, url, key }) => ({ client, url, key })))
  const { stdout } = await promisify(execFile)(process.execPath, [join(folder, 'run.mjs'), asked])
  const shown = JSON.parse(stdout) as readonly Shown[]
  const seen = shown.map((one) => ('status' in one ? String(one.status) : `error ${one.failed}`))
  for (const [place, { client, fault, answers, effects }] of cells.entries()) {
    const what = `${client}, ${fault}: ${answers}`
    await expect.poll(effects, { message: what }).toBe(1)
    // The fault happened, and was seen by the client.
    if (fault === 'drop') expect(answers[0], what).toBe(0)
    if (fault === 'away') expect(answers[0], what).toBe(503)
    if (fault === 'reused') expect(answers, what).toContain(422)
    expect(seen[place], what).toMatch(/^(201|409|422|error (409|422))$/)
  }
  const rows = names.map((client, row) => [
    `${client} ${versions[client]}`,
    ...columns.map((_, column) => {
      const word = seen[row * columns.length + column] as string
      return /^4/.test(word) ? `**${word}**` : word
    }),
  ])
  const head = ['client', ...columns.map(([title]) => title)]
  const lines = [head, head.map(() => '---'), ...rows].map((cellsOf) => `| ${cellsOf.join(' | ')} |`)
  const page = join(root, 'docs', 'reference', 'foreign-clients.md')
  const made = withTable(readFileSync(page, 'utf8'), 'foreign-clients', lines)
  if (process.env['REPRISE_WRITE_DOCS'] === '1') writeFileSync(page, made)
  expect(readFileSync(page, 'utf8'), 'stale: run this test with REPRISE_WRITE_DOCS=1').toBe(made)
})
