import { describe, expect, it } from 'vitest'
import { EngineError } from '../../test/transaction/scripted-engine.js'
import { rejection, settled, world } from '../../test/transaction/scripted-world.js'
import { retryPolicy } from '../retry/index.js'
import { transactionClassifier } from './classifier.js'

const failing = (word: 'repeat' | 'surface' | 'resolve') => ({
  commit: () => {
    throw new EngineError(word)
  },
})

describe('the classifier of transactions', () => {
  it('says what the failure of a transaction means, and nothing of other errors', async () => {
    const verdicts = []
    for (const word of ['repeat', 'surface', 'resolve'] as const) {
      const here = world(failing(word))
      const error = await rejection(
        settled(
          here,
          here.db.transact(() => 1, { attempts: 2 }),
        ),
      )
      const { help, happened } = transactionClassifier(error) ?? {}
      verdicts.push([help, happened])
    }
    expect(verdicts).toEqual([
      ['transient', 'no'],
      ['permanent', 'no'],
      ['permanent', 'maybe'],
    ])
    expect(transactionClassifier(new Error('another'))).toBeUndefined()
  })

  it('lets an unguarded policy repeat a transaction that is known to be dead', async () => {
    let calls = 0
    const here = world({
      commit: () => {
        if (++calls === 1) throw new EngineError('repeat')
      },
    })
    const policy = retryPolicy({ classify: transactionClassifier, clock: here.clock })
    const run = policy.once(() => here.db.transact(() => 'done', { attempts: 1 }))
    await expect(settled(here, run)).resolves.toBe('done')
    expect(calls).toBe(2)
  })
})
