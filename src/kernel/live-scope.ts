// Live scopes: values that travel through async code, and end when the work they were opened for ends.
//
// An AsyncLocalStorage alone hands its value to everything that was started inside, for as long as that lives: a timer
// left behind by a finished transaction would still see the transaction. Here the storage carries a frame, and a frame
// whose work has settled owns nothing any more.

import { builtin } from './runtime.js'
import { afterMicrotasks } from './time/clock.js'

/** One kind of value that travels with async code, such as the current deadline. */
export interface ScopeKind<Value> {
  /**
   * Runs `work` with `value` as the current one of this kind, for `work` and all that it starts, until its outcome is
   * there: until it returns or throws, or, if it returns a promise, until that settles. Then whatever still runs sees
   * the value of the nearest enclosing scope that is live, or none.
   *
   * A promise comes back as one of the same outcome, settled one turn of the microtask queue later, when the scope has
   * ended. Only genuine promises (also of another realm, also of a subclass) are waited for. Any other object with a
   * `then`, such as a query that starts when it is awaited, comes back untouched and ends the scope: asking it for its
   * outcome might run it twice. Await it inside `work`.
   *
   * Where the runtime has no AsyncLocalStorage (a browser) the value is seen by the synchronous part of `work` only.
   */
  run<Result>(value: Value, work: () => Result): Result
  /**
   * Opens a scope that its opener ends, for runners that wait for the outcome anyway: no promise is derived, and
   * nothing is awaited. Until then it counts as live, so it must be ended on every way out.
   */
  open(value: Value): OpenScope
  /** The value as one of those that {@link openScopes} opens together. */
  with(value: Value): ScopeValue
  /** The value of the nearest live scope of this kind around this code, or undefined. */
  current(): Value | undefined
}

/** A value of some kind, in no scope yet. */
export interface ScopeValue {
  readonly kind: unknown
  readonly value: unknown
}

/**
 * Opens scopes of several kinds, each inside the one before it, that are entered and ended together: at the price of
 * one.
 */
export function openScopes(values: readonly [ScopeValue, ...ScopeValue[]]): OpenScope {
  let frame = new Frame(values[0].kind, values[0].value, currentFrame(), false)
  for (let index = 1; index < values.length; index += 1) {
    const { kind, value } = values[index] as ScopeValue
    frame = new Frame(kind, value, frame, true)
  }
  return frame
}

/** A scope in the hands of whoever opened it. */
export interface OpenScope {
  /** Calls `work` inside the scope, which all that it starts stays in. */
  call<Result>(work: () => Result): Result
  /** Ends the scope. To be called once. */
  end(): void
}

/** A new kind of scope, apart from all others, also from those of the same name. The name is for people who debug. */
export function scopeKind<Value>(name: string): ScopeKind<Value> {
  const kind: ScopeKind<Value> = {
    run: (value, work) => runInFrame(new Frame(kind, value, currentFrame(), false), work),
    open: (value) => new Frame(kind, value, currentFrame(), false),
    with: (value) => ({ kind, value }),
    current() {
      // The common case, where nobody uses context, touches nothing.
      if (liveFrames === 0) return undefined
      let frame = nearestLive(storage?.getStore())
      while (frame !== undefined && frame.kind !== kind) {
        // What has settled in between is let go.
        frame.parent = nearestLive(frame.parent)
        frame = frame.parent
      }
      return frame?.value as Value | undefined
    },
  }
  return Object.freeze(Object.defineProperty(kind, Symbol.toStringTag, { value: `ScopeKind ${name}` }))
}

/**
 * Runs `work` outside every scope, for what must not belong to the work that happens to start it (a shared poller,
 * say).
 */
export function detached<Result>(work: () => Result): Result {
  if (storage === undefined || liveFrames === 0) return work()
  return storage.run(undefined, work)
}

class Frame implements OpenScope {
  // Declared only: a frame is made for every scope, and defining fields that the constructor sets would cost.
  declare live: boolean
  declare kind: unknown
  declare value: unknown
  declare parent: Frame | undefined
  // Whether the parent was opened together with this one, and ends with it.
  declare readonly endsParent: boolean

  constructor(kind: unknown, value: unknown, parent: Frame | undefined, endsParent: boolean) {
    this.live = true
    this.kind = kind
    this.value = value
    this.parent = parent
    this.endsParent = endsParent
    liveFrames += 1
  }

  call<Result>(work: () => Result): Result {
    return (storage as FrameStorage).run(this, work)
  }

  // Async code may hold a settled frame for long, so that it keeps neither value nor settled ancestors. New frames hang
  // on live ones only; a chain is therefore never longer than scopes were nested at one time, however many came and
  // went.
  end(): void {
    const { parent } = this
    this.live = false
    this.kind = undefined
    this.value = undefined
    if (parent !== undefined) {
      if (this.endsParent) parent.end()
      this.parent = nearestLive(parent)
    }
    liveFrames -= 1
    if (liveFrames > 0 || restPlanned) return
    // On Node 20 an enabled storage makes every await of the process two to three times as slow (60 ns become 150 to
    // 240), and disabling it undoes that. Enabling and disabling cost 1.2 us together, several times a scope, so it is
    // done once the microtasks at hand are through: scopes in a row, the usual case on a busy path, then share one
    // change. Other storages of the process are not affected.
    restPlanned = true
    afterMicrotasks(rest)
  }
}

function currentFrame(): Frame | undefined {
  storage ??= openStorage()
  return liveFrames === 0 ? undefined : nearestLive(storage.getStore())
}

function nearestLive(frame: Frame | undefined): Frame | undefined {
  let candidate = frame
  while (candidate !== undefined && !candidate.live) candidate = candidate.parent
  return candidate
}

interface FrameStorage {
  getStore(): Frame | undefined
  run<Result>(frame: Frame | undefined, work: () => Result): Result
  disable(): void
}

// One storage for all kinds, since each enabled one adds to the cost of every await. Made by the first scope.
let storage: FrameStorage | undefined
let isPromise: (value: unknown) => value is Promise<unknown> = (value) => value instanceof Promise
let liveFrames = 0
let restPlanned = false

function runInFrame<Result>(frame: Frame, work: () => Result): Result {
  let pending = false
  try {
    return frame.call(() => {
      const result = work()
      if (!isPromise(result)) return result
      const derived = settling(result, frame)
      pending = true
      return derived as Result
    })
  } finally {
    if (!pending) frame.end()
  }
}

// The caller gets the derived promise: handlers on one that is returned itself would mark its rejection as handled,
// and an error that nobody looks at would go unreported.
function settling(promise: Promise<unknown>, frame: Frame): Promise<unknown> {
  return promise.then(
    (result) => {
      frame.end()
      return result
    },
    (reason) => {
      frame.end()
      throw reason
    },
  )
}

function rest(): void {
  restPlanned = false
  try {
    if (liveFrames === 0) storage?.disable()
  } catch {
    // The runtime of Cloudflare's Workers has the method, and throws that it is not implemented.
  }
}

function openStorage(): FrameStorage {
  const hooks = builtin<typeof import('node:async_hooks')>('node:async_hooks')
  if (hooks === undefined) return new SynchronousStorage()
  const types = builtin<typeof import('node:util')>('node:util')?.types
  if (types !== undefined) isPromise = types.isPromise
  return new hooks.AsyncLocalStorage<Frame | undefined>()
}

// Stands in where there is no AsyncLocalStorage.
class SynchronousStorage implements FrameStorage {
  #frame: Frame | undefined

  getStore(): Frame | undefined {
    return this.#frame
  }

  run<Result>(frame: Frame | undefined, work: () => Result): Result {
    const before = this.#frame
    this.#frame = frame
    try {
      return work()
    } finally {
      this.#frame = before
    }
  }

  disable(): void {}
}
