import { describe, expect, it } from 'vitest'
import { scripted } from '../../../test/transaction/scripted-engine.js'
import { key } from '../../../test/transaction/scripted-world.js'
import { armFaultPoints, deadlineAfter, seededRandom } from '../../kernel/index.js'
import { manualClock } from '../../testing/index.js'
import { transactionFaultPoints } from './fault-points.js'
import { type KeyedCall, parseValue, printValue } from './keyed.js'
import { parseResolveToken, printResolveToken } from './resolve-token.js'
import { runTransaction } from './run.js'
import { CallSettings, settingsReader } from './settings.js'

describe('the fault points', () => {
  it('are reached in their order by a transaction with a key whose commit is lost', async () => {
    const reached: string[] = []
    const disarm = armFaultPoints((point) => void reached.push(point))
    try {
      const engine = scripted({
        commit: (session) => {
          if (session === 1) throw new Error('lost')
        },
      })
      const settings = settingsReader(engine.manifest, { random: seededRandom(1) })({ content: 'none', key })
      await runTransaction(engine, settings, () => 1)
    } finally {
      disarm()
    }
    const first = (point: string): number => reached.indexOf(point)
    expect(new Set(reached)).toEqual(new Set(transactionFaultPoints))
    expect(first('transaction.before-commit')).toBeLessThan(first('transaction.resolving'))
    expect(reached.slice(0, 6)).toEqual(transactionFaultPoints.slice(0, 6))
    expect(reached.at(-1)).toBe('transaction.committed')
  })
})

describe('the settings', () => {
  const { manifest } = scripted()

  it('keep a quarter of the deadline for resolution, at least 250 ms or half of it, and nothing where none is needed', () => {
    const clock = manualClock()
    const reserve = (deadline: string, more: object = {}) =>
      settingsReader(manifest, { clock })({ deadline: deadline as '1s', ...more }).reserveMs
    expect([reserve('8s'), reserve('600ms'), reserve('8s', { readOnly: true })]).toEqual([2_000, 250, 0])
    expect([reserve('500ms'), reserve('300ms'), reserve('20ms'), reserve('12ms')]).toEqual([250, 150, 10, 10])
    expect(settingsReader({ ...manifest, commit: 'certain' }, { clock })({}).reserveMs).toBe(0)
  })

  it('keep a reserve for each call, however little was left where its calls were defined', () => {
    const clock = manualClock()
    const shared = settingsReader(manifest, { clock })({ deadline: 0 })
    const own = { keyed: {} as KeyedCall<unknown>, found: undefined, readOnly: false, signal: undefined }
    const reserve = (limit: '8s' | '200ms') =>
      new CallSettings(shared, { ...own, deadline: deadlineAfter(limit, clock) }).reserveMs
    expect([reserve('8s'), reserve('200ms')]).toEqual([2_000, 100])
  })

  it('prefer what the call says over the domain’s defaults', () => {
    const defaults = { attempts: 3, bodyLimit: '1s', lockWait: 70 } as const
    expect(settingsReader(manifest, defaults)({ bodyLimit: 20 })).toMatchObject({
      attempts: 3,
      bodyLimitMs: 20,
      lockWaitMs: 70,
    })
    expect(settingsReader(manifest, {})({})).toMatchObject({ attempts: 8, bodyLimitMs: 5_000, connectionWaitMs: 1_000 })
  })
})

describe('a step that is still under way when the caller gives up', () => {
  const never = (): Promise<never> => new Promise(() => undefined)

  it.each([
    ['begin', { begin: never }],
    ['claim', { claim: never }],
  ])('%s: the connection is thrown away at once, since ROLLBACK would wait for it', async (step, script) => {
    const clock = manualClock()
    const engine = scripted({ ...script, rollback: never })
    const controller = new AbortController()
    const settings = settingsReader(engine.manifest, { clock })({ content: 'none', key, signal: controller.signal })
    const run = runTransaction(engine, settings, () => 1)
    await expect.poll(() => engine.log.at(-1)).toBe(step)
    controller.abort(new Error('gave up'))
    await expect(run).rejects.toThrow('gave up')
    expect(engine.log.slice(-2)).toEqual([step, 'discard'])
    expect(clock.pendingTimers).toBe(0)
  })

  it('begin: at the deadline too, and none of the reserve is spent on it', async () => {
    const clock = manualClock()
    const engine = scripted({ begin: never, rollback: never })
    const run = runTransaction(engine, settingsReader(engine.manifest, { clock })({ deadline: '4s' }), () => 1)
    run.catch(() => undefined)
    await expect.poll(() => engine.log.at(-1)).toBe('begin')
    await clock.advance(3_000)
    await expect(run).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(engine.log).toEqual(['acquire', 'begin', 'discard'])
  })
})

describe('a resolve token', () => {
  it('comes back as it was, for its domain only', () => {
    const unresolved = { trace: { xid: '7', start: '2026' } }
    const token = printResolveToken('zähler', unresolved)
    expect(parseResolveToken('zähler', token)).toEqual(unresolved)
    expect(() => parseResolveToken('other', token)).toThrow('another domain')
  })

  it.each([
    '',
    'rt1.',
    'rt1.e30',
    'rt1.bnVsbA',
    'rt2.abc',
    'rt1.%%%',
    `rt1.${Buffer.from('{"domain":"d","id":"free text"}').toString('base64url')}`,
    `rt1.${Buffer.from('{"domain":"d","trace":{"a":1}}').toString('base64url')}`,
  ])('refuses %j', (text) => {
    expect(() => parseResolveToken('d', text)).toThrow(expect.objectContaining({ code: 'RESOLVE_TOKEN_INVALID' }))
  })
})

describe('a stored value', () => {
  it.each([[null], [0], [''], [{ a: [1, { b: 'ü' }] }], [undefined]])('comes back as it was: %j', (value) => {
    expect(parseValue(printValue(value))).toEqual(value)
  })

  it.each([[2n ** 70n + 1n], [Number.NaN], [() => 1], ['\ud800']])(
    'is refused where JSON would change it: %s',
    (value) => {
      expect(() => printValue(value)).toThrow()
    },
  )
})
