// Whether something has to be waited for. What need not be waited for is not: a promise takes a turn of the event loop's queue each time.

/** Whether a value is a promise, or can be waited for like one. */
export function isPromise<Value>(value: Value | PromiseLike<Value>): value is PromiseLike<Value> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}
