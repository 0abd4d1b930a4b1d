// The guard for development and tests: `fetch` and `node:http(s)` refuse to send while a transaction is open around the
// call.

import http from 'node:http'
import https from 'node:https'
import { syncBuiltinESMExports } from 'node:module'
import type { RepriseError } from '../../kernel/index.js'
import { beStrict, refuseEffect } from './effect.js'
import { originOfCall, originOfFetch } from './origin.js'

type Call = (...args: never[]) => unknown
type Refuse = (args: readonly unknown[]) => RepriseError | undefined

const modules = [
  [http, 'http:'],
  [https, 'https:'],
] as const
let guarded = false

/** Puts the guard around the calls, once in a process. A second copy of the package guards its own transactions. */
export function guardCalls(): void {
  if (guarded) return
  guarded = true
  beStrict()
  // What fetch refuses, it refuses by its promise.
  globalThis.fetch = guardedCall(globalThis.fetch, refuseFetch, (error) => Promise.reject(error))
  for (const [module, protocol] of modules) {
    const refuse: Refuse = (args) => refuseEffect(() => ({ by: 'http', origin: originOfCall(args, protocol) }))
    for (const name of ['request', 'get'] as const) {
      Object.assign(module, { [name]: guardedCall(module[name], refuse, raise) })
    }
  }
  // So that `import { request } from 'node:http'` gets the guarded one too.
  syncBuiltinESMExports()
}

// A proxy keeps name, length, properties and text of the function.
function guardedCall<Guarded extends Call>(
  original: Guarded,
  refuse: Refuse,
  refused: (error: RepriseError) => unknown,
): Guarded {
  return new Proxy(original, {
    apply(target, self, args) {
      const error = refuse(args)
      return error === undefined ? Reflect.apply(target, self, args) : refused(error)
    },
  })
}

function refuseFetch([input]: readonly unknown[]): RepriseError | undefined {
  return refuseEffect(() => {
    const origin = originOfFetch(input)
    return origin === 'elsewhere' ? undefined : { by: 'fetch', origin }
  })
}

function raise(error: RepriseError): never {
  throw error
}
