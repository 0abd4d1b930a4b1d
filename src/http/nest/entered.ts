// Whether the method of a route was entered: pipes run just before it, inside the transaction, and what they throw is
// not the method's answer.

import { AsyncLocalStorage } from 'node:async_hooks'

const runs = new AsyncLocalStorage<{ isEntered: boolean }>()

/** What a run came to. */
export type RunEnd =
  | { readonly value: unknown; readonly thrown?: never }
  | { readonly thrown: { readonly error: unknown; readonly isEntered: boolean } }

/** Runs what leads to the method: interceptors inside of the route, pipes, and the method itself. */
export async function runToMethod(work: () => Promise<unknown>): Promise<RunEnd> {
  const run = { isEntered: false }
  try {
    return { value: await runs.run(run, work) }
  } catch (error) {
    return { thrown: { error, isEntered: run.isEntered } }
  }
}

/**
 * Puts in the place of a method one that says when it is entered, and is like it otherwise: name, parameters, and what
 * decorators have said of it.
 */
export function sayEntry(target: object, name: string | symbol, descriptor: PropertyDescriptor): void {
  const method = descriptor.value as (...given: unknown[]) => unknown
  const saying = function (this: unknown, ...given: unknown[]): unknown {
    const run = runs.getStore()
    if (run !== undefined) run.isEntered = true
    return method.apply(this, given)
  }
  for (const part of ['name', 'length'] as const) {
    Object.defineProperty(saying, part, { value: method[part], configurable: true })
  }
  for (const key of Reflect.getOwnMetadataKeys(method) as unknown[]) {
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, method), saying)
  }
  descriptor.value = saying
  Object.defineProperty(target, name, descriptor)
}
