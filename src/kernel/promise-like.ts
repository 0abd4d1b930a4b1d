// Whether something has to be waited for. What need not be waited for is not: each promise costs a turn of the queue of microtasks.

/** Whether a value is a promise, or can be waited for like one. */
export function isPromiseLike<Value>(value: Value | PromiseLike<Value>): value is PromiseLike<Value> {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === 'function'
}
