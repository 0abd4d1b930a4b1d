// HTTP conformance cases as data: what a server that accepts Idempotency-Key must do, seen from outside, whatever
// language it is written in.

import { ConformanceFailure } from '../expectations.js'
import type { HttpCaseClient } from './http-case-client.js'
import { type HttpCheck, httpCheck } from './http-check.js'

/** What a test must control besides the address. Only tests that start the server themselves can run such a case. */
export type HttpControl = 'kill' | 'freeze' | 'clock' | 'store' | 'configuration' | 'logs'

/** What all cases have in common. */
export interface HttpCaseFacts {
  /** Stable: `http-20`, its relatives `http-20b`, `http-20c`, … */
  readonly id: string
  /** Begins with MUST or SHOULD. */
  readonly title: string
  /** What goes wrong in a service that fails it. */
  readonly proves: string
}

/** A case that can be run against any address. It needs no test runner, and throws when the server fails it. */
export interface HttpCase extends HttpCaseFacts {
  /**
   * The routes that it uses, each as a method and a path. A server that answers 404 or 405 to one of them does not
   * offer the case.
   */
  readonly routes: readonly string[]
  /** How many processes on one store it needs. Default 1. */
  readonly places?: number
  run(client: HttpCaseClient, check: HttpCheck): Promise<void>
}

/** A case that needs control over the server, since it ends processes, moves clocks or stops stores. */
export interface ControlledHttpCase extends HttpCaseFacts {
  readonly needs: readonly HttpControl[]
}

/** The result of a case. */
export type HttpCaseOutcome =
  | { readonly outcome: 'passed' }
  | { readonly outcome: 'failed'; readonly why: string }
  | { readonly outcome: 'not offered'; readonly why: string }

/** Runs cases against a server, and remembers which routes it has. */
export interface HttpCaseRunner {
  /** Runs one case. Rejects only if something other than the server fails. */
  run(subject: HttpCase): Promise<HttpCaseOutcome>
}

/** A runner that uses this client. */
export function httpCaseRunner(client: HttpCaseClient): HttpCaseRunner {
  const offers = new Map<string, Promise<boolean>>()
  const offered = (route: string): Promise<boolean> => {
    const known = offers.get(route) ?? probe(client, route)
    offers.set(route, known)
    return known
  }
  return {
    async run({ routes, places = 1, run }) {
      const own = client.forCase()
      if (client.places < places) return { outcome: 'not offered', why: `it takes ${places} processes on one store` }
      try {
        for (const route of ['GET /effects', ...routes]) {
          if (!(await offered(route))) return { outcome: 'not offered', why: `there is no ${route}` }
        }
        await run(own, httpCheck)
        return { outcome: 'passed' }
      } catch (error) {
        if (error instanceof ConformanceFailure) return { outcome: 'failed', why: error.message }
        throw error
      } finally {
        await own.idle() // So that what a case has left under way disturbs no other.
      }
    },
  }
}

// Uses a user and a key of its own, so that it changes no count of a case, and the quickest possible request.
async function probe(client: HttpCaseClient, route: string): Promise<boolean> {
  const [method = 'POST', path = '/'] = route.split(' ', 2)
  const visited = path.replace(':account', `probe-${client.key()}`)
  const query = /\/(slow|waiting)$/.test(path) ? '?ms=1' : path === '/large' ? '?bytes=1' : ''
  const request = { method, path: visited + query }
  const answer = await client
    .user()
    .send(method === 'GET' ? request : { ...request, key: client.key(), body: '{"amount":1}' })
  return answer.status !== 404 && answer.status !== 405
}
