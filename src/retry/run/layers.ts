// Layers that repeat around one another. What may have happened is repeated by one of them, the outermost. What
// provably did not happen may be repeated where it happened, but it is load all the same: an intent has one allowance,
// the largest `attempts` on its way, and whoever repeats spends of it.

import { type ScopeValue, scopeKind, systemClock } from '../../kernel/index.js'
import { type RetryLayersEvent, retryLayers } from '../../telemetry/index.js'

/** How often one intent may be tried, and how often it was repeated: one object for all layers around it. */
export interface Allowance {
  /** Calls in all, the first included: the largest `attempts` on the way of the intent. */
  attempts: number
  /** Repeats so far, whichever layer made them. */
  spent: number
}

/** How many layers there are, and what they would make of one call. */
export interface Layers {
  /** How many there are. */
  readonly depth: number
  /** The calls they would make at most if each repeated: the product of their attempts. */
  readonly declared: number
}

/** A layer that is at work, with those around it: a call of a policy, a transaction, a caller in another process. */
export interface OpenLayer extends Layers {
  /** Whether it, or one around it, repeats what may have happened. */
  readonly owns: boolean
  /** What is left of it is for this layer and for those inside it. */
  readonly allowance: Allowance
  /**
   * Told of a key before it is sent from inside. Refuses with KEY_PER_ATTEMPT one that changes between attempts.
   *
   * @param target Where it is sent; undefined: not known.
   */
  sends?(target: string | undefined, key: string): void
}

/** What repeats, as a layer. */
export interface Layer {
  /** The name in events and reports: of a policy, or of the domain of a transaction. */
  readonly name: string
  /** How often it calls what is inside, the first call included. */
  readonly attempts: number
  /** Whether it is an intent of its own, and repeats although a layer around it does. */
  readonly layer: 'inherit' | 'own'
  /** What it is where nothing is around it: one layer, and those that are not ours and were declared. */
  readonly own: Layers
}

const layers = /* @__PURE__ */ scopeKind<OpenLayer>('reprise.retry')

/** A layer, to be opened as a scope together with others; for runners. */
export const layerScope: (layer: OpenLayer) => ScopeValue = layers.with

// Entering async context has a price, and layers multiply only where somebody repeats. So first attempts enter it only
// for a while after a repeat anywhere in the process, and where somebody has another use for it: listens to meetings of
// layers, or compares keys. Otherwise what a body calls at once sees the layer through a variable, and what was
// repeated elsewhere is found along the causes of the error. Repeats, which are rare and slow anyway, always enter.
const latelyMs = 10_000
let seenUntilMs = 0
let aroundAtOnce: OpenLayer | undefined

/** The layer at work around this code, as async context knows it. */
export const currentLayer: () => OpenLayer | undefined = layers.current

// The same, and the one whose body is being called at once.
function nearestLayer(): OpenLayer | undefined {
  return layers.current() ?? aroundAtOnce
}

/** Somebody repeats: for ten seconds from now on every attempt of the process is to be seen by what it calls. */
export function noteRepeat(): void {
  seenUntilMs = Math.max(seenUntilMs, systemClock.monotonicMs() + latelyMs)
}

/**
 * From now on every attempt is to be seen by what it calls, first ones too; for clients that compare the keys of
 * attempts with {@link demandSameKey}, when they are made.
 */
export function watchKeys(): void {
  seenUntilMs = Number.POSITIVE_INFINITY
}

/**
 * The layer around a call of a policy; undefined: none. Says so to whoever listens.
 *
 * @param key The key of the call, which must be the same in every attempt of the layer around it.
 */
export function layerAround(layer: Layer, key: string | undefined): OpenLayer | undefined {
  const around = nearestLayer()
  if (around === undefined) return undefined
  meet(around, layer, 'policy')
  if (key !== undefined) around.sends?.(undefined, key)
  return around
}

/**
 * Refuses with KEY_PER_ATTEMPT a key that another attempt of a layer around this code has not sent to the same target;
 * for clients, before they send.
 */
export function demandSameKey(target: string, key: string): void {
  nearestLayer()?.sends?.(target, key)
}

/**
 * A layer begins its work inside another one: both spend of one allowance, which is as large as the larger of them
 * needs. Says so to whoever listens.
 */
export function meet(around: OpenLayer, inner: Layer, kind: RetryLayersEvent['kind']): void {
  const { name, attempts, own } = inner
  const allowance = inner.layer === 'inherit' ? around.allowance : { attempts, spent: 0 }
  allowance.attempts = Math.max(allowance.attempts, attempts)
  // What may have happened is the owner's to repeat. What a transaction repeats provably did not happen.
  const allowed = kind === 'policy' && isOwnedBy(around, inner) ? 1 : attempts
  tellLayers({ name, kind, attempts: allowed, ...own }, around, allowance)
}

/** Says to whoever listens that a layer is, or was, inside another one. */
export function tellLayers(
  inner: { name: string; kind: RetryLayersEvent['kind']; attempts: number } & Layers,
  around: OpenLayer,
  { attempts: allowance, spent }: Allowance,
): void {
  if (!retryLayers.hasSubscribers) return
  const { name: policy, kind, attempts: allowed } = inner
  const depth = around.depth + inner.depth
  const declared = around.declared * inner.declared
  retryLayers.publish({ policy, kind, depth, declared, allowed, allowance, spent })
}

/** Whether the layer around this one repeats what may have happened, so that this one does not. */
export function isOwnedBy(around: OpenLayer | undefined, { layer }: Pick<Layer, 'layer'>): boolean {
  return around?.owns === true && layer === 'inherit'
}

/** How many repeats are left to all layers of an intent together. */
export function repeatsLeft({ attempts, spent }: Allowance): number {
  return attempts - 1 - spent
}

/**
 * Takes a repeat out of the allowance of the layers around, for a loop that decides anew; false: none is left. Without
 * a layer around there is nothing to share.
 *
 * @param rounds How often the loop decides at most, the first time included.
 */
export function spendRepeat(around: OpenLayer | undefined, rounds: number): boolean {
  if (around === undefined) return true
  around.allowance.attempts = Math.max(around.allowance.attempts, rounds)
  if (repeatsLeft(around.allowance) <= 0) return false
  around.allowance.spent += 1
  return true
}

/** Whether an attempt has to be in async context, to be seen by what it calls later. */
export function entersContext(innermost: boolean, attempt: number): boolean {
  if (attempt > 1) return true
  return !innermost && (retryLayers.hasSubscribers || (seenUntilMs > 0 && isLately()))
}

function isLately(): boolean {
  if (systemClock.monotonicMs() < seenUntilMs) return true
  seenUntilMs = 0
  return false
}

/** Calls the body of a policy in async context, until it has ended. */
export function callInContext<Given, Result>(
  layer: OpenLayer,
  body: (given: Given) => PromiseLike<Result> | Result,
  given: Given,
): Promise<Result> {
  return layers.run(layer, () => promiseOf(body, given))
}

/** Calls the body of a policy without context: what it calls at once sees the layer, if it is one. */
export function callAtOnce<Given, Result>(
  layer: OpenLayer | undefined,
  body: (given: Given) => PromiseLike<Result> | Result,
  given: Given,
): Promise<Result> {
  const before = aroundAtOnce
  aroundAtOnce = layer ?? before
  const result = promiseOf(body, given)
  aroundAtOnce = before
  return result
}

/**
 * Calls a body; what it throws is a rejection. What it returns is resolved inside the scope around this call, since
 * some work (a query, a lazy promise) starts only when it is awaited. Not an async function: that would be another
 * promise, for which an enabled storage pays again.
 */
export function promiseOf<Given, Result>(
  body: (given: Given) => PromiseLike<Result> | Result,
  given: Given,
): Promise<Result> {
  try {
    return Promise.resolve(body(given))
  } catch (error) {
    return Promise.reject(error)
  }
}

/**
 * Runs work whose repeats belong to a caller in another process: policies inside make one attempt, except for failures
 * that provably had no effect. For servers that were told so (`Reprise-Retry-Owner: caller`) by a caller they trust.
 *
 * @param declared How many calls the caller makes at most, if it said so. Default 1: not known.
 */
export function ownedByCaller<Result>(work: () => Result, declared = 1): Result {
  const around = nearestLayer()
  const caller: OpenLayer = {
    depth: (around?.depth ?? 0) + 1,
    declared: (around?.declared ?? 1) * declared,
    owns: true,
    allowance: around?.allowance ?? { attempts: declared, spent: 0 },
  }
  return layers.run(caller, work)
}
