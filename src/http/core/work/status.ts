// The status of long work, as a route of its own: it waits for the end as long as it is asked to, gives the outcome as
// a repeat would get it, and tells nobody of what somebody else has begun.

import { type OperationAnswers, timeOfRecords, type WorkState, workState } from '../../../idempotency/index.js'
import { attemptHeader, deadlineHeader, isStoredKey, type StoredKey, scope } from '../../../identity/index.js'
import { defined, inTime, isRepriseError, sleep } from '../../../kernel/index.js'
import { equalJitter } from '../../../retry/index.js'
import { httpAnswered } from '../../../telemetry/index.js'
import { type Answer, AnswerError, finish } from '../answer/answer.js'
import { HttpRequest, type RequestFacts } from '../request/http-request.js'
import { tellCause } from '../route/causes.js'
import { errorProblem, type NamedProblem } from '../route/error-problem.js'
import { refusalAnswer } from '../route/refusal.js'
import { asReplayed, exposed, principalNames, type Route } from '../route/route.js'
import { type LongWork, type WorkParts, workingAnswer } from './long-work.js'

/** What a status is made of. */
export interface StatusParts<Native, Input> extends WorkParts<Native, Input> {
  readonly work: LongWork<Native, Input>
  /** The longest wait, in ms. */
  readonly longestWaitMs: number
}

// How often work in another process is looked at: soon at first, then once a second.
const pollBackoff = /* @__PURE__ */ equalJitter({ baseMs: 50, capMs: 1_000 })
// How many may wait at the same moment; one more is told at once that the work goes on.
const mostWaiting = 1_000
const nothing = new Uint8Array(0)
const gone =
  'The work was begun, and nothing says whether it was carried out: whoever worked on it is gone, or could not tell how it ended. It is not carried out again by asking; ask later, or repeat the request that began it, with its key.'

/** The status of the work of a route. The last part of the path says which work is meant. */
export class StatusRoute<Native, Input> implements Route<Native> {
  readonly name: string
  readonly answers: OperationAnswers
  readonly #parts: StatusParts<Native, Input>
  #waiting = 0

  constructor(parts: StatusParts<Native, Input>) {
    this.name = parts.settings.name
    this.answers = parts.operation.answers
    this.#parts = parts
  }

  async handle(facts: RequestFacts, native: Native): Promise<Answer> {
    const { settings } = this.#parts
    const request = new HttpRequest(facts, nothing)
    let names: readonly [string, ...string[]] | undefined
    try {
      names = principalNames(await settings.principal(native, request))
    } catch (error) {
      if (isRepriseError(error, 'SCOPE_INVALID')) return this.#failed(error, request)
      if (!(error instanceof AnswerError)) throw error
      if (error.problem !== undefined) return this.#refuse(error.problem, request)
      return this.#tell(await finish(error.answer, settings.largestAnswer), request)
    }
    if (names === undefined) return this.#refuse({ name: 'unauthenticated' }, request)
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      const detail = 'The status of work is read: GET or HEAD.'
      return this.#refuse({ name: 'method-not-allowed', detail, headers: { allow: 'GET, HEAD' } }, request)
    }
    const id = idIn(request)
    if (id === undefined) return this.#refuse({ name: 'work-not-found' }, request)
    try {
      return await this.#answer(id, names, request)
    } catch (error) {
      return this.#failed(error, request)
    }
  }

  async #answer(id: StoredKey, names: readonly [string, ...string[]], request: HttpRequest): Promise<Answer> {
    const { settings, operation } = this.#parts
    const scopes = [...settings.methods].map((method) => scope(...names, method, settings.name))
    const found = await this.#ended(() => workState(operation, { id, scopes }), id, request)
    switch (found.state) {
      case 'absent':
        return this.#refuse({ name: 'work-not-found' }, request)
      case 'unknown': {
        const retryable = operation.answers.recovery?.kind !== 'hold'
        return this.#refuse({ name: 'outcome-unknown', detail: gone, retryable }, request)
      }
      case 'working': {
        const answer = workingAnswer()
        return this.#tell({ ...answer, headers: [...answer.headers, ...exposed(request)] }, request)
      }
      default: {
        const { outcome } = found
        const answer = outcome.outcome === 'succeeded' ? outcome.value : (outcome.failure.data as Answer)
        if (!answer.tombstone) return this.#tell(asReplayed(answer, request), request)
        return this.#refuse({ name: 'answer-not-kept', headers: Object.fromEntries(answer.headers) }, request)
      }
    }
  }

  // Looks until the work has ended, or nobody wants to wait any longer.
  async #ended(
    look: () => Promise<WorkState<Answer, 'answer'>>,
    id: StoredKey,
    request: HttpRequest,
  ): Promise<WorkState<Answer, 'answer'>> {
    const { store, work } = this.#parts
    const { clock, random } = timeOfRecords(store.records)
    const untilMs = clock.monotonicMs() + this.#waitMs(request)
    for (let looks = 1; ; looks += 1) {
      const found = await look()
      const leftMs = untilMs - clock.monotonicMs()
      if (found.state !== 'working' || leftMs <= 0 || this.#waiting >= mostWaiting) return found
      const end = work.endOf(id)
      this.#waiting += 1
      try {
        if (end === undefined) await sleep(Math.min(leftMs, pollBackoff.delayMs(looks, 0, random)), { clock })
        else await inTime({ clock, limitMs: leftMs, expired: () => undefined }, end).catch(() => undefined)
      } finally {
        this.#waiting -= 1
      }
    }
  }

  // As long as the request says, by `Prefer: wait=10` (RFC 7240, 4.3) or `?wait=10`, in seconds, less what the route
  // and the caller's deadline allow. Malformed values are ignored.
  #waitMs(request: HttpRequest): number {
    const preferred = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,6})"?\s*(?:$|[,;])/i.exec(request.header('prefer') ?? '')?.[1]
    const asked = preferred ?? /^\d{1,6}$/.exec(request.query().get('wait') ?? '')?.[0]
    if (asked === undefined) return 0
    const { longestWaitMs, settings } = this.#parts
    const callerMs = deadlineHeader.read(request.header(deadlineHeader.name)) ?? Number.POSITIVE_INFINITY
    return Math.max(0, Math.min(Number(asked) * 1_000, longestWaitMs, callerMs - settings.wayBackMs))
  }

  #failed(error: unknown, request: HttpRequest): Promise<Answer> {
    const { settings } = this.#parts
    const refusal = errorProblem(error, { keyed: true, keyField: settings.keyField, settlesItself: true })
    if (refusal === undefined) throw error
    return this.#refuse(refusal, request, error)
  }

  async #refuse(named: NamedProblem, request: HttpRequest, error?: unknown): Promise<Answer> {
    const { settings } = this.#parts
    const answer = await refusalAnswer(settings, named, (mistake) => this.#tellCause(named, 500, mistake))
    if (answer.status >= 500 && error !== undefined) this.#tellCause(named, answer.status, error)
    const headers = [...answer.headers, ...exposed(request)]
    return this.#tell({ ...answer, headers }, request, { problem: named.name, ...defined({ error }) })
  }

  #tellCause({ name: problem }: NamedProblem, status: number, error: unknown): void {
    const { settings, store } = this.#parts
    const nowMs = timeOfRecords(store.records).clock.monotonicMs()
    tellCause({ route: this.name, domain: store.name, problem, status, error }, nowMs, settings.log)
  }

  #tell(answer: Answer, request: HttpRequest, more?: { readonly problem: string; readonly error?: unknown }): Answer {
    if (httpAnswered.hasSubscribers) {
      const attempt = attemptHeader.read(request.header(attemptHeader.name))
      httpAnswered.publish({ route: this.name, how: 'asked', status: answer.status, attempt, ...more })
    }
    return answer
  }
}

function idIn({ path }: HttpRequest): StoredKey | undefined {
  const last = path.slice(path.lastIndexOf('/') + 1)
  try {
    const id = decodeURIComponent(last)
    return isStoredKey(id) ? id : undefined
  } catch {
    return undefined
  }
}
