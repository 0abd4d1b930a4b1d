// What a caller says about its own waiting and repeating: how long it still waits, which call this is, and whether it repeats by itself.

import { attemptHeader, deadlineHeader, retryOwnerHeader } from '../../../identity/index.js'
import { ownedByCaller } from '../../../retry/index.js'
import type { HttpRequest } from '../request/http-request.js'
import type { RouteSettings } from './settings.js'

/** What a request says about its caller. */
export interface Caller {
  /** How long it still waits, less what the way back takes, in ms; undefined: it does not say. */
  readonly waitsMs: number | undefined
  /** Which call of the intent this is; undefined: it does not say. */
  readonly attempt: number | undefined
  /** Whether it says that it repeats by itself. To be believed from trusted callers only. */
  readonly repeats: boolean
}

/** Reads what a request says about its caller. Malformed values are ignored. */
export function callerOf(request: HttpRequest, { wayBackMs }: Pick<RouteSettings, 'wayBackMs'>): Caller {
  const waitsMs = deadlineHeader.read(request.header(deadlineHeader.name))
  return {
    waitsMs: waitsMs === undefined ? undefined : Math.max(0, waitsMs - wayBackMs),
    attempt: attemptHeader.read(request.header(attemptHeader.name)),
    repeats: retryOwnerHeader.read(request.header(retryOwnerHeader.name)) === 'caller',
  }
}

/** The time for a request, in ms: what the route or the domain gives, and never more than the caller still waits. */
export function timeForMs({ waitsMs }: Caller, ownMs: number): number {
  return waitsMs === undefined ? ownMs : Math.min(waitsMs, ownMs)
}

/** Does the work, in one attempt at each call below where a caller that is trusted repeats by itself. */
export function onBehalfOf<Result>({ repeats }: Caller, trusted: boolean, work: () => Result): Result {
  return repeats && trusted ? ownedByCaller(work) : work()
}
