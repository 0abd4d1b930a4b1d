// Why requests are refused with a 5xx, told to whoever runs the server. A client reads only that the store cannot be
// reached; without this, a wrong password would leave an empty log.

import { defined } from '../../../kernel/index.js'
import type { ProblemName } from '../problems.js'

/** Why a request was refused with a 5xx. */
export interface RefusalCause {
  readonly route: string
  /** The name of the domain that the route works in. */
  readonly domain: string
  readonly problem: ProblemName
  readonly status: number
  /** The error behind it. */
  readonly error: unknown
  /** All of this in a sentence or two, with what the error and its causes say. */
  readonly message: string
}

/** Hears of causes. */
export type CauseLog = (cause: RefusalCause) => void

const intervalMs = 60_000
const mostKinds = 100

// When each kind was told last, by the clock of the domain.
const toldAtMs = new WeakMap<CauseLog, Map<string, number>>()

/** Tells a cause, unless one of its kind (domain, problem and codes) was told within the last minute. Never throws. */
export function tellCause(cause: Omit<RefusalCause, 'message'>, nowMs: number, log: CauseLog = warn): void {
  const chain = errorChain(cause.error)
  const codes = chain.map(({ name, code }) => code ?? name)
  const kind = JSON.stringify([cause.domain, cause.problem, codes])
  const told = toldAtMs.get(log) ?? new Map<string, number>()
  toldAtMs.set(log, told)
  const lastMs = told.get(kind)
  if (lastMs !== undefined && Math.abs(nowMs - lastMs) < intervalMs) return
  told.delete(kind)
  told.set(kind, nowMs)
  if (told.size > mostKinds) told.delete(told.keys().next().value as string)
  const { route, domain, problem, status } = cause
  const why = chain.map(({ text }) => text).join(' Caused by ')
  const message = `The route ${route} in the domain ${domain} refuses with ${status} (${problem}). ${why} This is told once a minute.`
  try {
    log({ ...cause, message })
  } catch {
    // The request is answered all the same.
  }
}

interface Link {
  readonly name: string
  readonly code?: string
  readonly text: string
}

const longest = 500

// The error and its causes, as far as they say something of their own.
function errorChain(error: unknown): readonly Link[] {
  const links: Link[] = []
  let current = error
  for (let depth = 0; depth < 4 && current !== undefined && current !== null; depth++) {
    const { name, code, message, cause } = Object(current) as Record<string, unknown>
    const called = typeof name === 'string' ? name.slice(0, longest) : typeof current
    const known = typeof code === 'string' ? code.slice(0, longest) : undefined
    // Node says nothing but a code where every address of a host refused.
    const said = typeof message === 'string' ? message.slice(0, longest) : String(current).slice(0, longest)
    const head = known === undefined ? called : `${called} ${known}`
    const text = said === '' ? head : `${head}: ${said}`
    links.push({ name: called, text: text.endsWith('.') ? text : `${text}.`, ...defined({ code: known }) })
    current = cause
  }
  return links
}

function warn({ message, problem }: RefusalCause): void {
  const code = `REPRISE_${problem.replaceAll('-', '_').toUpperCase()}`
  process.emitWarning(message, { type: 'RepriseWarning', code })
}
