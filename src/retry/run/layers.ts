// One layer repeats. A retry inside a retry of the same intent multiplies, so the inner one makes a single attempt,
// except for failures that provably had no effect, and unless it is told to repeat on its own.

import { type OpenScope, scopeKind } from '../../kernel/index.js'
import { retryLayers } from '../../telemetry/index.js'

/** The layers that repeat around some code. */
export interface Layers {
  /** How many there are. */
  readonly depth: number
  /** The calls they would make at most if each repeated: the product of their attempts. */
  readonly declared: number
}

/** A policy as a layer. */
export interface Layer {
  /** The name in events and reports. */
  readonly name: string
  /** Whether it repeats although a layer around it does. */
  readonly layer: 'inherit' | 'own'
  /** What it is to policies inside its bodies, where nothing is around it. */
  readonly own: Layers
  /** Whether it was declared that there are none inside. */
  readonly innermost: boolean
}

const layers = scopeKind<Layers>('reprise.retry')

// Entering async context has a price, so first attempts do without it in a process with a single policy, and in
// policies that are declared to be innermost. What they call at once is seen all the same, through a variable; and
// repeats, which are rare and slow anyway, enter context in any case.
let known = 0
let aroundAtOnce: Layers | undefined
// How many scopes are open; while there are none, nobody has to look.
let open = 0

/** Makes layers known: policies that repeat, or a caller that does. */
export function registerLayer(layers = 1): void {
  known += layers
}

/** Runs a function that makes policies of one layer, so that together they count as one that is already known. */
export function sameLayer<Made>(make: () => Made): Made {
  const before = known
  try {
    return make()
  } finally {
    known = before
  }
}

/** Whether a layer around this code repeats, and this one therefore does not; says so to whoever listens. */
export function ownedAbove({ name, own, layer }: Layer): boolean {
  if (open === 0 && aroundAtOnce === undefined) return false
  const around = layersAround()
  if (around === undefined) return false
  // A policy inside itself, or one made inside another: from now on every attempt is to be seen.
  seen()
  const owned = layer === 'inherit'
  if (retryLayers.hasSubscribers) {
    const allowed = owned ? 1 : own.declared
    retryLayers.publish({ policy: name, depth: around.depth + 1, declared: around.declared * own.declared, allowed })
  }
  return owned
}

/** Whether an attempt has to be in a scope, to be seen by others. Repeats always are. */
export function entersContext({ innermost }: Layer, attempt: number): boolean {
  return attempt > 1 || (known > 1 && !innermost)
}

/** A scope for an attempt as a layer, until {@link endLayer}. */
export function openLayer(own: Layers): OpenScope {
  open += 1
  return layers.open(inside(own))
}

/** Ends the scope of an attempt, once, if it has one. */
export function endLayer(scope: OpenScope | undefined): void {
  if (scope === undefined) return
  open -= 1
  scope.end()
}

/** Calls the body of a policy in its scope. What it throws at once comes back as a rejection. */
export function callInScope<Given, Result>(
  scope: OpenScope,
  body: (given: Given) => PromiseLike<Result> | Result,
  given: Given,
): Promise<Result> {
  try {
    // Resolved inside, since some work (a query, a lazy promise) starts only when it is awaited.
    return scope.call(() => Promise.resolve(body(given)))
  } catch (error) {
    return Promise.reject(error)
  }
}

/** Calls the body of a policy without a scope: what it calls at once sees the layer, if it is one. */
export function callAtOnce<Given, Result>(
  own: Layers | undefined,
  body: (given: Given) => PromiseLike<Result> | Result,
  given: Given,
): Promise<Result> {
  const before = aroundAtOnce
  aroundAtOnce = own ?? before
  try {
    return Promise.resolve(body(given))
  } catch (error) {
    return Promise.reject(error)
  } finally {
    aroundAtOnce = before
  }
}

function layersAround(): Layers | undefined {
  return layers.current() ?? aroundAtOnce
}

function inside(own: Layers): Layers {
  const around = layersAround()
  return around === undefined ? own : { depth: around.depth + 1, declared: around.declared * own.declared }
}

function seen(): void {
  if (known < 2) known = 2
}

/**
 * Runs work whose repeats belong to a caller in another process: policies inside make one attempt, except for failures
 * that provably had no effect. For servers that were told so (`Reprise-Retry-Owner: caller`) by a caller they trust.
 *
 * @param declared How many calls the caller makes at most, if it said so. Default 1: not known.
 */
export function ownedByCaller<Result>(work: () => Result, declared = 1): Result {
  seen()
  // Not counted down again: a process that is called in this way looks at every call.
  open += 1
  return layers.run(inside({ depth: 1, declared }), work)
}
