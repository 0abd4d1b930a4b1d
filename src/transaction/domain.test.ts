import { describe, expect, it } from 'vitest'
import { scripted } from '../../test/transaction/scripted-engine.js'
import { domainOf } from './domain.js'
import { remember, transactionHistoryOf } from './history.js'
import { insideTransaction, openTransaction } from './open-transaction.js'
import { UnknownCommitError } from './unknown-commit.js'

describe('a domain', () => {
  it('shows its name and manifest', () => {
    const engine = scripted()
    expect(domainOf(engine)).toMatchObject({ name: 'scripted', manifest: engine.manifest })
  })

  it('remembers the history of errors, and of nothing else', () => {
    const error = new Error('x')
    remember(error, { attempts: [], because: 'attempts' })
    remember('text', { attempts: [], because: 'attempts' })
    expect(transactionHistoryOf(error)).toEqual({ attempts: [], because: 'attempts' })
    expect([transactionHistoryOf('text'), transactionHistoryOf(undefined), transactionHistoryOf({})]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  })

  it('knows the transaction around some code', async () => {
    const transaction = { domain: 'here', poison: () => undefined, effects: undefined }
    const seen = insideTransaction(transaction as never, () => openTransaction()?.domain)
    expect([seen, openTransaction()]).toEqual(['here', undefined])
  })

  it('says what to do about an unknown commit', () => {
    const failed = { attempt: 1, phase: 'committing', error: new Error('lost'), suppressed: [] } as never
    const error = new UnknownCommitError('token', [failed], [])
    expect(error).toMatchObject({ code: 'UNKNOWN_OUTCOME', name: 'UnknownCommitError', resolveToken: 'token' })
    expect(error.cause).toMatchObject({ message: 'lost' })
    expect(error.message).toContain('same key')
    expect(new UnknownCommitError(undefined, [failed], []).message).toContain('without a key')
  })
})
