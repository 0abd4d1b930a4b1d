// A pool that knows in which transaction the code runs that asks it: for programs that use a pool everywhere, and hand
// no transaction around.

import { AsyncLocalStorage } from 'node:async_hooks'
import { type StatementPort, TransactionPool } from '../handle.js'
import type { PostgresPool } from '../options.js'

type Call = (...args: unknown[]) => unknown

// A callback hears why it is refused, and nobody waits for the promise then.
function told(promise: Promise<unknown>, args: readonly unknown[]): unknown {
  const callback = args.find((value) => typeof value === 'function') as Call | undefined
  if (callback === undefined) return promise
  promise.catch((error: unknown) => callback(error))
  return undefined
}

/** The transactions of a domain, found by the context of the code that runs in them. */
export class AmbientTransactions {
  // Not a live scope: what a body has started is to be refused after its end, and not to find the pool instead.
  readonly #current = new AsyncLocalStorage<TransactionPool>()

  /** What runs the body of a transaction, so that it is found. */
  entering(port: StatementPort): <Result>(work: () => Result) => Result {
    const inner = new TransactionPool(port)
    return (work) => this.#current.run(inner, work)
  }

  /** The pool, whose statements and connections are those of the transaction, where one is around. */
  poolOver<Pool extends PostgresPool>(pool: Pool): Pool {
    const current = this.#current
    const outer = pool as unknown as { readonly query: Call; readonly connect: Call }
    const query: Call = (...args) => {
      const inner = current.getStore()
      return inner === undefined ? outer.query(...args) : told(inner.query(...(args as [unknown])), args)
    }
    const connect: Call = (...args) => {
      const inner = current.getStore()
      return inner === undefined ? outer.connect(...args) : told(inner.connect(...args), args)
    }
    return new Proxy(pool, {
      get(target, name) {
        if (name === 'query') return query
        if (name === 'connect') return connect
        const member: unknown = Reflect.get(target, name, target)
        return typeof member === 'function' ? member.bind(target) : member
      },
    })
  }
}
