import { describe, expect, it } from 'vitest'
import { memoryWorld } from '../../../test/stores/conformance/memory-world.js'
import { runConformanceCase, type StoreWorld } from './conformance-case.js'
import { ConformanceFailure, failing, holds, same } from './expectations.js'
import { gate } from './gate.js'
import { keyCases } from './key-cases.js'
import { emitCases } from './messages/emit-cases.js'
import { messageCases } from './messages/message-cases.js'
import { operationCases } from './operations/operation-cases.js'
import { recordCases } from './record-cases.js'
import { rowCases } from './rows/row-cases.js'
import { sequenceCases } from './sequences/sequence-cases.js'
import { transactionCases } from './transaction-cases.js'

const storeCases = [
  ...transactionCases,
  ...keyCases,
  ...rowCases,
  ...recordCases,
  ...operationCases,
  ...sequenceCases,
  ...messageCases,
]
const cases = [...storeCases, ...emitCases]
const outcome = async (id: string, world: StoreWorld): Promise<string> => {
  const subject = storeCases.find((candidate) => candidate.id === id)
  if (subject === undefined) throw new Error(`no case ${id}`)
  return runConformanceCase(subject, world)
}

describe('the conformance suite', () => {
  it('names each case once, and says MUST or SHOULD', () => {
    expect(new Set(cases.map(({ id }) => id)).size).toBe(cases.length)
    for (const { id, title } of cases)
      expect([id, title]).toEqual([
        expect.stringMatching(/^store(\.operation)?\.\w+\.\d\d$/),
        expect.stringMatching(/^(MUST|SHOULD) /),
      ])
  })

  it('catches a store that keeps what a body wrote before it threw', async () => {
    const world = await memoryWorld()
    let leaked = 0
    const leaky: StoreWorld = { ...world, effectsOf: async () => leaked, effect: async () => void leaked++ }
    await expect(outcome('store.transaction.02', leaky)).rejects.toBeInstanceOf(ConformanceFailure)
    await expect(outcome('store.transaction.02', world)).resolves.toBe('passed')
  })

  it('catches a store that runs the body of a repeat', async () => {
    const world = await memoryWorld()
    const transact: StoreWorld['db']['transact'] = (body, { deadline = '10s' } = {}) =>
      world.db.transact(body, { deadline })
    const forgetful: StoreWorld = { ...world, db: { ...world.db, transact }, second: async () => forgetful.db }
    await expect(outcome('store.key.01', forgetful)).rejects.toBeInstanceOf(ConformanceFailure)
    await expect(outcome('store.key.03', forgetful)).rejects.toBeInstanceOf(ConformanceFailure)
  })

  it('catches a store that swallows the engine’s errors', async () => {
    const world = await memoryWorld()
    const swallowing: StoreWorld = { ...world, offend: async () => undefined }
    await expect(outcome('store.transaction.06', swallowing)).rejects.toBeInstanceOf(ConformanceFailure)
  })

  it('runs the refusal where the manifest denies a case, and catches a store that does not refuse', async () => {
    const world = await memoryWorld()
    await expect(outcome('store.rows.08', world)).resolves.toMatch(/^refused: /)
    const manifest = { ...world.db.manifest, readOnly: false }
    const lying: StoreWorld = { ...world, db: { ...world.db, manifest } }
    await expect(outcome('store.transaction.11', lying)).rejects.toBeInstanceOf(ConformanceFailure)
  })
})

describe('expectations', () => {
  it('fail in words', async () => {
    expect(() => same(1n, 2n, 'sum')).toThrow('sum: "1n", and should be "2n"')
    expect(() => holds(false, 'that')).toThrow('that does not hold')
    await expect(failing(Promise.resolve(1))).rejects.toThrow('it ended with 1')
    await expect(failing(Promise.reject({ code: 'A' }), 'B')).rejects.toThrow('it failed with "A", and should with B')
  })
})

describe('a gate', () => {
  it('opens when all have arrived, and not before', async () => {
    const both = gate(2)
    let open = false
    const first = both.arrive().then(() => {
      open = true
    })
    await both.waiting(1)
    expect([both.arrived, open]).toEqual([1, false])
    await both.arrive()
    await first
    expect([both.arrived, open]).toEqual([2, true])
  })
})
