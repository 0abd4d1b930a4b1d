// A store under the conformance suite: how to make a fresh world of it, how to take it down, and how to run a case on
// it.

import {
  type CaseOutcome,
  type ConformanceCase,
  type OutboxWorld,
  runConformanceCase,
} from '../../../src/testing/index.js'

/** A world, and how to end it. */
export interface OpenWorld extends OutboxWorld {
  close(): Promise<void>
}

/** A store with one of its drivers. */
export interface StoreUnderTest {
  /** The head of its column, such as `sqlite (libsql)`. */
  readonly name: string
  /** Runs a case on a fresh, empty world. Throws when the store fails it. */
  run(subject: ConformanceCase<OutboxWorld>): Promise<CaseOutcome>
  /** What the cases ran on, where that is not this process. */
  about?(): string
}

/** A store whose worlds are made in this process. */
export function inThisProcess(
  name: string,
  open: (subject: ConformanceCase<OutboxWorld>) => Promise<OpenWorld>,
): StoreUnderTest {
  return {
    name,
    async run(subject) {
      const world = await open(subject)
      try {
        return await runConformanceCase(subject, world)
      } finally {
        await world.close()
      }
    },
  }
}
