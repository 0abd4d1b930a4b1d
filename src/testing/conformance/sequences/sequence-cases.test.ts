// The cases about sequences catch stores that do less than they must.

import { describe, expect, it } from 'vitest'
import { memoryWorld } from '../../../../test/stores/conformance/memory-world.js'
import { isRepriseError } from '../../../kernel/index.js'
import type { Accepted, Arrived, Sequence } from '../../../sequence/index.js'
import { type ConformanceHandle, runConformanceCase, type StoreWorld } from '../conformance-case.js'
import { sequenceRaceCases } from './race-cases.js'
import { sequenceCases } from './sequence-cases.js'

type Run = (() => unknown) | undefined
type Accept = (tx: ConformanceHandle, at: Arrived, run: Run) => Promise<Accepted<unknown>>
interface Tampered {
  readonly accept?: (accept: Accept, open: () => number) => Accept
  readonly open?: (sequence: Sequence<ConformanceHandle>, producer: string) => Promise<number>
}

/** A world whose sequences were tampered with. */
async function tampered({ accept, open }: Tampered): Promise<StoreWorld> {
  const world = await memoryWorld()
  const sequence = (name: string): Sequence<ConformanceHandle> => {
    const real = world.db.sequence(name)
    let opened = 0
    const accepting: Accept = (tx, at, run) => (run === undefined ? real.accept(tx, at) : real.accept(tx, at, run))
    return {
      name,
      open: async (producer) => {
        opened = open === undefined ? await real.open(producer) : await open(real, producer)
        return opened
      },
      accept: (accept?.(accepting, () => opened) ?? accepting) as Sequence<ConformanceHandle>['accept'],
      purge: (options) => real.purge(options),
    }
  }
  const db = { ...world.db, sequence }
  return { ...world, db, second: async () => db }
}

const outcome = async (number: string, world: StoreWorld): Promise<unknown> => {
  const subject = sequenceCases.find(({ id }) => id === `store.sequence.${number}`)
  return subject === undefined ? 'no such case' : runConformanceCase(subject, world)
}

/** Bugs that a store may have, and the cases that find them. */
const bugs: Readonly<Record<string, readonly [cases: readonly string[], tampered: Tampered]>> = {
  'carries out a duplicate': [
    ['01', '13'],
    {
      accept: (accept) => async (tx, at, run) => {
        const answer = await accept(tx, at, run)
        return answer.result === 'new' ? answer : { result: 'new', value: await run?.() }
      },
    },
  ],
  'takes every epoch for the open one': [
    ['04'],
    { accept: (accept, open) => (tx, at, run) => accept(tx, { ...at, epoch: open() }, run) },
  ],
  'does not compare content': [
    ['06'],
    {
      accept:
        (accept) =>
        (tx, { producer, epoch, number }, run) =>
          accept(tx, { producer, epoch, number }, run),
    },
  ],
  'takes a producer that it does not know for a new one': [
    ['05', '11'],
    {
      accept: (accept) => (tx, at, run) =>
        accept(tx, at, run).catch(async (error: unknown) => {
          if (!isRepriseError(error, 'SEQUENCE_FENCED') || 'open' in error.details) throw error
          return { result: 'new', value: await run?.() }
        }),
    },
  ],
  'lets numbers be left out': [
    ['03'],
    {
      accept: (accept) => (tx, at, run) =>
        accept(tx, at, run).catch(async (error: unknown) => {
          if (!isRepriseError(error, 'SEQUENCE_GAP')) throw error
          return { result: 'new', value: await run?.() }
        }),
    },
  ],
  'tells an epoch that is fenced already': [
    ['04', '14'],
    {
      open: async (sequence, producer) => {
        const epoch = await sequence.open(producer)
        await sequence.open(producer)
        return epoch
      },
    },
  ],
}

describe('cases about sequences', () => {
  it('are one list, with those of races in it', () => {
    expect(sequenceCases).toEqual(expect.arrayContaining([...sequenceRaceCases]))
  })

  it.each(sequenceCases.map(({ id }) => id.slice(-2)))(
    'store.sequence.%s passes where nothing is wrong',
    async (id) => {
      expect(await outcome(id, await tampered({}))).toBe('passed')
    },
  )

  it.each(Object.keys(bugs))('catch a store that %s', async (bug) => {
    const [cases, planted] = bugs[bug] as (typeof bugs)[string]
    for (const id of cases) await expect(outcome(id, await tampered(planted))).rejects.toThrow()
  })
})
