// The program of a process of a proof: opens the world of a module, then makes the calls that it is sent.

import { armFromEnvironment, type FaultPoints, faultPoints } from '../fault-points.js'
import { type Heard, hear } from './calls.js'
import { closeWorld, type ProofSubject } from './subject.js'

/** What a process of a proof is sent. */
export type ToChild = { readonly open: true } | { readonly call: string }

/** What it answers. */
export interface FromChild {
  readonly heard?: Heard
  /** The fault points that were reached since its world is open. */
  readonly reached?: readonly string[]
  /** Why its world could not be opened. */
  readonly failed?: string
}

const [module = '', databaseUrl = ''] = process.argv.slice(2)
let world: unknown
let points: FaultPoints | undefined
let subject: ProofSubject<unknown, unknown> | undefined

async function answer(request: ToChild): Promise<FromChild> {
  if ('open' in request) {
    subject = (await import(module)) as ProofSubject<unknown, unknown>
    if (typeof subject.operation !== 'function' || typeof subject.input !== 'function') {
      throw new TypeError('the module must export operation and input')
    }
    world = await subject.world?.(databaseUrl === '' ? {} : { databaseUrl })
    // What opens the world passes fault points too, and is not meant.
    points = armFromEnvironment() ?? faultPoints()
    return {}
  }
  const { operation, input } = subject as ProofSubject<unknown, unknown>
  const heard = await hear(() => operation(input(request.call), world))
  return { heard, reached: points?.reached ?? [] }
}

process.on('message', (request: ToChild) => {
  const fail = (error: unknown): FromChild => ({ failed: error instanceof Error ? error.message : String(error) })
  void answer(request)
    .then(undefined, fail)
    .then((said) => process.send?.(said))
})
process.on('disconnect', () => {
  points?.disarm()
  closeWorld(world).then(
    () => process.exit(0),
    () => process.exit(1),
  )
})
