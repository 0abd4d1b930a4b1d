import { describe, expect, it } from 'vitest'
import { scripted } from '../../../test/transaction/scripted-engine.js'
import { domainOf } from '../index.js'
import { effectRuleOf } from './rule.js'

describe('the rule of a domain', () => {
  it.each([
    { effects: 'throw' as 'poison' },
    { allowOrigins: ['https://example.com/path'] },
    { allowOrigins: ['https://example.com', 'example.com'] },
    { allowOrigins: ['ftp://example.com'] },
    { allowOrigins: ['https://user@example.com'] },
    { allowOrigins: ['unix:relative'] },
    { allowOrigins: [5 as unknown as string] },
  ])('is refused when the domain is made: %j', (defaults) => {
    expect(() => domainOf(scripted(), defaults)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
  })

  it('reports by default, and allows nothing', () => {
    expect(effectRuleOf({})).toEqual({ mode: 'report', allowOrigins: new Set() })
  })

  it('takes an origin in any spelling', () => {
    const allowOrigins = ['https://EXAMPLE.com:443/', 'http://[::1]:4318', 'unix:/run/agent.sock']
    expect([...effectRuleOf({ allowOrigins }).allowOrigins]).toEqual([
      'https://example.com',
      'http://[::1]:4318',
      'unix:/run/agent.sock',
    ])
  })
})
