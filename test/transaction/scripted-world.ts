// A domain over a scripted engine in virtual time, as the runner's tests use it.

import { expect } from 'vitest'
import { changedRecord, draftedRecord, type Stored } from '../../src/atomicity/index.js'
import { type Key, scope } from '../../src/identity/index.js'
import { seededRandom } from '../../src/kernel/index.js'
import { manualClock } from '../../src/testing/index.js'
import { type Domain, domainOf } from '../../src/transaction/index.js'
import { EngineError, type Script, type Scripted, type ScriptedHandle, scripted } from './scripted-engine.js'

/** The intent of the tests. */
export const key = { scope: scope('tests'), key: 'intent-1' as Key }
/** What is found under a key whose transaction committed with this value; by default that of another call. */
export function storedAs(value: string, token: string = 'of another'): Stored {
  const noFence = (): never => expect.unreachable('an atomic claim has no fence')
  const claim = draftedRecord({ mode: 'atomic', token }, 1, noFence)
  const change = { state: 'succeeded', value, remembered: Number.POSITIVE_INFINITY } as const
  return { record: changedRecord(claim, change, 2, noFence), nowMs: 3 }
}
/** Throws what another try may cure. */
export const transient = (): never => {
  throw new EngineError('repeat')
}

/** A domain over a scripted engine, in virtual time. */
export interface World {
  readonly db: Domain<ScriptedHandle>
  readonly engine: Scripted
  readonly clock: ReturnType<typeof manualClock>
}

/** A new world. */
export function world(script: Script = {}): World {
  const engine = scripted(script)
  const clock = manualClock()
  return { db: domainOf(engine, { clock, random: seededRandom(1) }), engine, clock }
}

/** Lets virtual time run until the work settles. */
export async function settled<Result>({ clock }: World, work: Promise<Result>): Promise<Result> {
  let done = false
  const mark = (): void => {
    done = true
  }
  work.then(mark, mark)
  for (let turn = 0; turn < 2_000 && !done; turn++) {
    await new Promise<void>((resolve) => setImmediate(resolve))
    if (!done) await clock.advance(10)
  }
  return work
}

/** The error that work ends with. */
export const rejection = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => expect.unreachable('it was to fail'),
    (error: unknown) => error,
  )
