// The service: which request goes where. Everything but POST /payments is plain HTTP, without a key: a redrive that is
// repeated finds nothing left to decide, and the route without Reprise is there to show what a repeat does to it.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Answer, AnswerError, answerOf, finish, problem } from 'reprise/http/core'
import type { NodeListener } from 'reprise/http/node'
import { DrillError } from './drill.js'
import { pageFiles } from './files.js'
import type { Ledger } from './ledger.js'
import { Live } from './live.js'
import { accountRule, isAccount, paymentRoute, principalOf, type RouteParts } from './payments.js'
import { type OwnProblems, ownProblems, problemPage, problemPath } from './problems.js'
import { Receipts } from './receipts/receipts.js'
import { plainPath, plainRoute } from './without-reprise.js'

/** What the service is made of. */
export interface ServiceParts {
  readonly ledger: Ledger
  /** Where the service is reached; undefined: types of problems are paths. */
  readonly origin: string | undefined
  /** Whether trouble can be asked for. */
  readonly drill: boolean
  /** Tells whoever watches over this process that it is about to kill itself, and whether to start it again. */
  announceExit(restart: boolean): Promise<void>
}

/** The service, listening to requests. */
export class Service {
  readonly #parts: ServiceParts
  readonly #live = new Live()
  readonly #receipts: Receipts
  readonly #files = pageFiles()
  readonly #problems: OwnProblems
  readonly #problemBase: string
  readonly #pay: NodeListener
  readonly #payPlainly: ReturnType<typeof plainRoute>
  readonly #underWay = new Set<ServerResponse>()
  #draining = false

  constructor(parts: ServiceParts) {
    this.#parts = parts
    this.#problemBase = (parts.origin ?? '') + problemPath
    this.#problems = ownProblems(this.#problemBase)
    this.#receipts = new Receipts(parts.ledger, ({ owner, account, payment }, what) =>
      this.#live.tellOwner(owner, { account, payment, what }),
    )
    const route: RouteParts = {
      ledger: parts.ledger,
      receipts: this.#receipts,
      problemBase: this.#problemBase,
      problems: this.#problems,
      drill: parts.drill,
      around: (request) => ({
        cut: () => {
          this.#live.tell('cut')
          request.socket.destroy()
        },
        announceExit: parts.announceExit,
        failure: (status) => this.#problems('drill-failure', { status }),
      }),
      onError: (error, request, response) => void this.#failed(error, request, response),
    }
    this.#pay = paymentRoute(route)
    this.#payPlainly = plainRoute(route)
  }

  /** Works on receipts until the signal ends it. Rejects where it cannot go on. */
  runReceipts(signal: AbortSignal): Promise<void> {
    return this.#receipts.run(signal)
  }

  /** Answers a request. Never rejects. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#underWay.add(response)
    response.on('close', () => this.#underWay.delete(response))
    // A browser itself repeats a request, even a POST, if a reused connection is cut. Then nobody would see that an
    // answer was lost.
    const isBrowser = request.headers['sec-fetch-site'] !== undefined
    if (this.#draining || (this.#parts.drill && isBrowser)) response.setHeader('connection', 'close')
    try {
      await this.#route(request, response)
    } catch (error) {
      await this.#failed(error, request, response)
    }
  }

  /** From now on connections end with their answer, and streams end at once. */
  drain(): void {
    this.#draining = true
    this.#live.end()
    for (const response of this.#underWay) if (!response.headersSent) response.setHeader('connection', 'close')
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const address = addressOf(request.url ?? '/')
    if (address === undefined) return send(this.#invalid('The address cannot be read.'), request, response)
    const { pathname, searchParams } = address
    const principal = principalOf(request.headers.authorization)
    if (pathname === '/payments' && request.method === 'POST') {
      // Who calls is asked before the layer is, and on every request.
      if (principal === undefined) return send(this.#nobody(), request, response)
      const drill = String(request.headers['drill'] ?? '') || undefined
      return this.#live.serve(principal, drill, () => this.#pay(request, response))
    }
    if (pathname === plainPath && this.#parts.drill && principal !== undefined && request.method === 'POST') {
      return send(await this.#payPlainly(request, principal), request, response)
    }
    if (pathname === '/drill/events' && this.#parts.drill && principal !== undefined && request.method === 'GET') {
      return this.#live.watch(principal, response)
    }
    await send(await this.#plain(request.method ?? '', pathname, searchParams, principal), request, response)
  }

  async #failed(error: unknown, request: IncomingMessage, response: ServerResponse): Promise<void> {
    // Thrown as an answer, by the route without Reprise: the layer answers those of the other one itself.
    if (error instanceof AnswerError && !response.headersSent) {
      const { answer, problem: refused } = error
      return send(refused === undefined ? answer : this.#invalid(refused.detail), request, response)
    }
    console.error(error instanceof DrillError ? error.message : error)
    if (response.headersSent) response.destroy()
    else await send(this.#problems('failed'), request, response)
  }

  async #plain(
    method: string,
    path: string,
    query: URLSearchParams,
    principal: string | undefined,
  ): Promise<Answer | Response> {
    const isPayments = path === '/payments'
    const id = /^\/payments\/(?<id>[^/]+)$/.exec(path)?.groups?.['id']
    const redriven = /^\/receipts\/(?<id>[^/]+)\/redrive$/.exec(path)?.groups?.['id']
    const page = this.#files.get(path) ?? (path.startsWith(problemPath) ? problemPage(path) : undefined)
    const isDrill = this.#parts.drill && (path === '/drill/effects' || path === '/drill/events' || path === plainPath)
    const isOther = path === '/healthz' || path === '/receipts'
    if (!isPayments && (id ?? redriven ?? page) === undefined && !isDrill && !isOther) {
      return this.#problems('not-found')
    }
    const isPost = redriven !== undefined || path === plainPath
    if (isPost ? method !== 'POST' : method !== 'GET' && method !== 'HEAD') {
      const allow = isPost ? 'POST' : `GET, HEAD${isPayments ? ', POST' : ''}`
      const detail = 'The Allow field says which methods are allowed here.'
      return problem('method-not-allowed', { base: this.#problemBase, detail, headers: { allow } })
    }
    if (page !== undefined) return page
    if (path === '/healthz') return fresh({ status: this.#draining ? 'draining' : 'ok', drill: this.#parts.drill })
    const { ledger } = this.#parts
    if (path === '/drill/effects') return this.#read(async () => fresh({ payments: await ledger.count() }))
    if (principal === undefined) return this.#nobody()
    if (redriven !== undefined) return this.#read(() => this.#redrive(principal, redriven))
    const account = query.get('account') ?? undefined
    if (account !== undefined && !isAccount(account)) return this.#invalid(accountRule)
    return this.#read(async () => {
      if (path === '/receipts') {
        return account === undefined ? this.#invalid(accountRule) : fresh(await this.#receipts.look(principal, account))
      }
      if (id === undefined) return fresh({ items: await ledger.list(principal, account) })
      const payment = await ledger.find(principal, id)
      return payment === undefined ? this.#problems('not-found') : fresh(payment)
    })
  }

  async #redrive(principal: string, id: string): Promise<Answer | Response> {
    const payment = await this.#parts.ledger.find(principal, id)
    const isRedriven = payment !== undefined && (await this.#receipts.redrive(principal, payment))
    return isRedriven ? fresh({ redriven: id }) : this.#problems('not-found')
  }

  #nobody(): Answer {
    return problem('unauthenticated', { base: this.#problemBase, headers: { 'www-authenticate': 'Bearer' } })
  }

  #invalid(detail: string): Answer {
    return problem('request-invalid', { base: this.#problemBase, detail })
  }

  async #read(look: () => Promise<Answer | Response>): Promise<Answer | Response> {
    try {
      return await look()
    } catch (error) {
      console.error(`The ledger could not be read: ${error instanceof Error ? error.message : error}`)
      return problem('store-unavailable', { base: this.#problemBase })
    }
  }
}

// A path that begins with two slashes is a path, and names no other host.
function addressOf(target: string): URL | undefined {
  const address = target.startsWith('/') ? `http://service${target}` : target
  return URL.canParse(address, 'http://service') ? new URL(address, 'http://service') : undefined
}

function fresh(body: object): Response {
  return Response.json(body, { headers: { 'cache-control': 'no-store' } })
}

// Answers of these routes are small and in memory; those of the layer are sent by its adapter.
async function send(answer: Answer | Response, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { status, headers, body } = await finish(answerOf(answer), Number.MAX_SAFE_INTEGER)
  response.statusCode = status
  for (const [name, value] of headers) response.appendHeader(name, value)
  const bytes = Buffer.from((body ?? '') as string)
  response.setHeader('content-length', bytes.length)
  response.end(request.method === 'HEAD' ? undefined : bytes)
}
