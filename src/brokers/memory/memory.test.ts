import { describe, expect, it } from 'vitest'
import { brokerCases, runBrokerCase } from '../../testing/index.js'
import { memoryBroker } from './index.js'

describe('a broker in memory', () => {
  it('refuses what it cannot be made of', () => {
    expect(() => memoryBroker({ nothing: 1 } as never)).toThrow(/nothing/)
  })
})
