import { describe, expect, it } from 'vitest'
import { EngineError } from '../../../test/transaction/scripted-engine.js'
import { key, rejection, settled, storedAs, world } from '../../../test/transaction/scripted-world.js'
import type { Stored } from '../../atomicity/index.js'
import type { StoredKey } from '../../identity/index.js'
import { seededRandom } from '../../kernel/index.js'
import { domainOf, UnknownCommitError } from '../index.js'
import { printResolveToken } from './resolve-token.js'

describe('a token that names no claim', () => {
  const id = `sha256:${'a'.repeat(43)}` as StoredKey
  const newer: Stored = { record: { ...storedAs('1').record, format: 99 }, nowMs: 3 }

  it.each([
    ['of a newer format', newer],
    ['whose value is no JSON', storedAs('{')],
  ])('leaves it unknown whose record it is, at once, where that is one %s', async (_, stored) => {
    const here = world({ claim: () => stored })
    const token = printResolveToken('scripted', { id })
    await expect(here.db.resolve(token)).resolves.toEqual({ outcome: 'unknown' })
    expect(here.engine.log.filter((step) => step === 'claim')).toHaveLength(1)
    // By the name of the claim it can be told that the record is somebody else's.
    const named = printResolveToken('scripted', { id, token: 'ours' })
    await expect(here.db.resolve(named)).resolves.toEqual({ outcome: 'aborted' })
    const same = printResolveToken('scripted', { id, token: stored.record.token ?? '' })
    await expect(here.db.resolve(same)).resolves.toEqual({ outcome: 'committed' })
  })

  it('is settled by a record that can be read', async () => {
    const here = world({ claim: () => storedAs('"stored"') })
    const outcome = here.db.resolve(printResolveToken('scripted', { id }))
    await expect(outcome).resolves.toEqual({ outcome: 'committed', value: 'stored' })
  })
})

describe('an ambiguous commit', () => {
  const lost = (attempt: number): void => {
    if (attempt === 1) throw new EngineError('resolve')
  }

  it('hands out what is stored when the key turns out to be taken', async () => {
    let runs = 0
    const here = world({ commit: lost, claim: (session) => (session === 1 ? 'claimed' : storedAs('{"n":1}')) })
    const run = here.db.transact(() => ({ n: ++runs }), { content: 'none', key })
    await expect(settled(here, run)).resolves.toEqual({ n: 1 })
    expect(runs).toBe(1)
    expect(here.engine.log).toEqual([
      ...['acquire', 'begin', 'claim', 'record {"n":1}', 'commit', 'discard'],
      ...['acquire', 'begin', 'claim', 'rollback', 'keep'],
    ])
  })

  it('runs the body again only when the closing insert went through', async () => {
    let runs = 0
    const here = world({ commit: lost })
    await expect(
      settled(
        here,
        here.db.transact(() => ++runs, { content: 'none', key }),
      ),
    ).resolves.toBe(2)
    expect(here.engine.log.filter((step) => step === 'claim')).toHaveLength(3)
  })

  it('is unknown, and not repeated, where the window of the key has passed meanwhile by the wall clock', async () => {
    let runs = 0
    const here = world({
      commit: lost,
      claim: (session) => {
        if (session === 2) here.clock.setWallMs(here.clock.wallMs() + 3_600_000)
        return 'claimed'
      },
    })
    const run = here.db.transact(() => ++runs, { content: 'none', key, window: '1h' })
    const error = await rejection(settled(here, run))
    expect(error).toBeInstanceOf(UnknownCommitError)
    expect(error).toMatchObject({ suppressed: [{ code: 'MARKER_FORGOTTEN' }] })
    expect(runs).toBe(1)
  })

  it.each([
    ['its own', (token: string) => storedAs('"stored"', token), ['ran']],
    ['that of another call, which ran what belongs to it', () => storedAs('"stored"'), []],
  ])('runs afterCommit where the commit that is found is %s', async (_, stored, expected) => {
    const ran: string[] = []
    const here = world({ commit: lost, claim: (session, { token }) => (session === 1 ? 'claimed' : stored(token)) })
    const run = here.db.transact((tx) => tx.afterCommit(() => ran.push('ran')), { content: 'none', key })
    await expect(settled(here, run)).resolves.toBe('stored')
    expect(ran).toEqual(expected)
  })

  it('closes under READ COMMITTED, whatever the body asked for', async () => {
    const here = world({ commit: lost })
    await settled(
      here,
      here.db.transact(() => 1, { content: 'none', key, isolation: 'serializable' }),
    )
    expect(here.engine.begun.map(({ isolation }) => isolation)).toEqual([
      'serializable',
      'read-committed',
      'serializable',
    ])
  })

  it('is unknown when the closing insert stays blocked, and the token settles it later', async () => {
    let blocked = true
    const here = world({
      commit: lost,
      claim: (session) => {
        if (session === 1) return 'claimed'
        if (blocked) throw new EngineError('repeat')
        return storedAs('"stored"')
      },
    })
    const error = await rejection(
      settled(
        here,
        here.db.transact(() => 'first', { content: 'none', key, deadline: '1s' }),
      ),
    )
    expect(error).toBeInstanceOf(UnknownCommitError)
    const { resolveToken = '', transactions, suppressed } = error as UnknownCommitError
    expect(transactions).toMatchObject([{ phase: 'committing', resolved: 'unknown' }])
    expect(suppressed.length).toBeGreaterThan(0)
    blocked = false
    await expect(here.db.resolve(resolveToken)).resolves.toEqual({ outcome: 'committed', value: 'stored' })
    await expect(here.db.resolve('nonsense')).rejects.toMatchObject({ code: 'RESOLVE_TOKEN_INVALID' })
    const elsewhere = domainOf({ ...here.engine, name: 'other' })
    await expect(elsewhere.resolve(resolveToken)).rejects.toMatchObject({ code: 'RESOLVE_TOKEN_INVALID' })
  })

  it('without a key asks the server by the trace, and keeps the result at hand', async () => {
    const here = world({ commit: lost, trace: { xid: '7' }, resolve: async () => 'committed' })
    await expect(
      settled(
        here,
        here.db.transact(() => 'in hand'),
      ),
    ).resolves.toBe('in hand')
    const again = world({ commit: lost, trace: { xid: '7' }, resolve: async () => 'aborted' })
    let runs = 0
    await expect(
      settled(
        again,
        again.db.transact(() => ++runs),
      ),
    ).resolves.toBe(2)
  })

  it('without key and trace is unknown, and not repeated', async () => {
    const here = world({ commit: lost })
    const error = await rejection(
      settled(
        here,
        here.db.transact(() => 1),
      ),
    )
    expect(error).toMatchObject({ code: 'UNKNOWN_OUTCOME', resolveToken: undefined })
    expect(here.engine.log.filter((step) => step === 'begin')).toHaveLength(1)
  })

  it('gives COMMIT a timer that ends before the reserve, and destroys the connection', async () => {
    const here = world({ commit: (attempt) => attempt === 1 && new Promise(() => undefined) })
    const startedMs = here.clock.monotonicMs()
    let closedAtMs = 0
    const claim = here.engine.acquire.bind(here.engine)
    const engine = {
      ...here.engine,
      acquire: (limits: Parameters<typeof claim>[0]) => {
        if (here.engine.log.includes('commit')) closedAtMs ||= here.clock.monotonicMs()
        return claim(limits)
      },
    }
    const db = domainOf(engine, { clock: here.clock, random: seededRandom(1) })
    await settled(
      here,
      db.transact(() => 1, { content: 'none', key, deadline: '4s' }).catch(() => undefined),
    )
    expect(closedAtMs - startedMs).toBeGreaterThanOrEqual(3_000)
    expect(closedAtMs - startedMs).toBeLessThan(3_200)
    expect(here.engine.log).toContain('discard')
  })
})
