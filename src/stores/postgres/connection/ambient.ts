// A pool that knows in which transaction the code runs that asks it: for programs that use a pool everywhere, and hand
// no transaction around.

import { AsyncLocalStorage } from 'node:async_hooks'
import type { HandleLife } from '../../../atomicity/index.js'
import { detached, RepriseError, warn } from '../../../kernel/index.js'
import type { InnerStatement } from '../../sql/index.js'
import { type ClientPort, TransactionPool } from '../handle.js'
import type { PostgresAnswer, PostgresPool } from '../options.js'

type Call = (...args: unknown[]) => unknown

/** What the clients of an ambient pool need of a session. */
interface AmbientPort {
  readonly life: Pick<HandleLife, 'call' | 'closed' | 'poison'>
  /** Sends a statement that stands for itself. */
  sendAlone(config: string | object, values: unknown[] | undefined, by: object): Promise<PostgresAnswer>
  /** Does in savepoints what a client says about a transaction of its own, when those of others have ended. */
  nest(statement: InnerStatement, by: object, waits: boolean): Promise<boolean>
}

/** The transactions of a domain, found by the context of the code that runs in them. */
export class AmbientTransactions {
  // Not a live scope: what a body has started is to be refused after its end, and not to find the pool instead.
  readonly #current = new AsyncLocalStorage<TransactionPool | undefined>()

  /** What runs the body of a transaction, so that it is found. */
  entering(port: AmbientPort): <Result>(work: () => Result) => Result {
    const inner = new TransactionPool(asOnPool(port))
    return (work) => this.#current.run(inner, work)
  }

  /** Runs work in which no transaction is found. */
  outside<Result>(work: () => Result): Result {
    return this.#current.run(undefined, () => detached(work))
  }

  /** The pool, whose statements and connections are those of the transaction, where one is around. */
  poolOver<Pool extends PostgresPool>(pool: Pool): Pool {
    const current = this.#current
    const outer = pool as unknown as { readonly query: Call; readonly connect: Call }
    const query: Call = (...args) => {
      const inner = current.getStore()
      return inner === undefined ? outer.query(...args) : inner.query(...(args as [unknown]))
    }
    const connect: Call = (...args) => {
      const inner = current.getStore()
      return inner === undefined ? outer.connect(...args) : inner.connect(...args)
    }
    const ambient: Pool = new Proxy(pool, {
      get(target, name) {
        if (name === 'query') return query
        if (name === 'connect') return connect
        const member: unknown = Reflect.get(target, name, target)
        // Its own are no methods, but the classes that it makes clients and promises with.
        if (typeof member !== 'function' || Object.hasOwn(target, name)) return member
        return (...args: unknown[]): unknown => {
          const result: unknown = member.apply(target, args)
          // What is chained, as `on` is, goes on with this pool, and not with the one that knows no transaction.
          return result === target ? ambient : result
        }
      },
    })
    return ambient
  }
}

// Each statement stands for itself, and inner transactions on several clients wait for one another.
function asOnPool(port: AmbientPort): ClientPort {
  const { life } = port
  return {
    life: {
      poison: (error) => life.poison(error),
      call: (work) => (life.closed ? tooLate() : life.call(work, 'alone')),
    },
    send: (config, values, by = port) => port.sendAlone(config, values, by),
    nest: (statement, by) => port.nest(statement, by, true),
  }
}

// Nobody may be waiting for it any more, and a statement that was not sent is no reason to end the process: a warning
// tells of it where no caller does.
function tooLate(): Promise<never> {
  const message =
    'The transaction that this statement was started in has ended, and the statement was not sent. Await it before the answer; or, where it is to outlive the transaction, start it by db.detached(() => …), or use the pool that was given to postgres().'
  warn('TRANSACTION_OVER', message)
  const refused = Promise.reject(new RepriseError('TRANSACTION_OVER', message))
  refused.catch(() => undefined)
  return refused
}
