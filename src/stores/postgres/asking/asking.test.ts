import { describe, expect, it } from 'vitest'
import { manualClock } from '../../../testing/index.js'
import { type Connections, knownConnection } from '../connection/connections.js'
import type { PostgresAnswer, PostgresPoolClient } from '../options.js'
import { evidenceIn } from './lock-evidence.js'
import { LockReports } from './lock-report.js'
import { resolveTrace } from './resolve.js'
import { takeTrace } from './trace.js'

// What the server answers is tested on servers; here it is scripted, for the sake of order and time.
function scripted(answer: (text: string) => Record<string, unknown>[] | Error) {
  const texts: string[] = []
  const released: unknown[] = []
  const client = {
    async query(text: string): Promise<PostgresAnswer> {
      texts.push(text)
      const rows = answer(text)
      if (rows instanceof Error) throw rows
      return { rows, rowCount: rows.length, command: 'SELECT' }
    },
    release: (destroy?: boolean) => released.push(destroy),
    on: () => undefined,
    removeListener: () => undefined,
  } as unknown as PostgresPoolClient
  return { client, texts, released }
}

const trace = { xid: '9', pid: '1', start: '2', system: '3', timeline: '4', life: '5' }

describe('traces', () => {
  const full = { xid: '9', pid: '1', timeline: '4', start: '2', system: '3', life: '5' }

  it('ask for what does not change once for a connection', async () => {
    const { client, texts } = scripted(() => [])
    expect(await takeTrace(client, full)).toEqual(trace)
    expect(knownConnection(client).backend).toMatchObject({ pid: '1', changes: false })
    expect(await takeTrace(client, { xid: '10', pid: 1 })).toEqual({ ...trace, xid: '10' })
    expect(texts).toEqual([])
  })

  it('ask each time once the backend was seen to change', async () => {
    const { client, texts } = scripted(() => [{ start: '22', system: '3', life: '5', timeline: '4' }])
    await takeTrace(client, full)
    expect(await takeTrace(client, { xid: '10', pid: 7 })).toEqual({ ...trace, xid: '10', pid: '7', start: '22' })
    expect(texts).toHaveLength(1)
    expect(knownConnection(client).backend).toMatchObject({ pid: '7', changes: true })
    expect(await takeTrace(client, { ...full, pid: '8', start: '33' })).toMatchObject({ pid: '8', start: '33' })
    expect(texts).toHaveLength(1)
  })
})

describe('resolving', () => {
  it('waits for the grace, ends the backend once, and gives up at its limit', async () => {
    const clock = manualClock()
    const look = [{ system: '3', timeline: '4', life: '5', status: 'in progress' }]
    const { client, texts } = scripted((text) => (text.includes('pg_terminate_backend') ? [{}] : look))
    const resolving = resolveTrace(client, trace, 2_000, clock)
    const terminations = () => texts.filter((text) => text.includes('pg_terminate_backend')).length
    await clock.advance(400)
    expect(terminations()).toBe(0)
    await clock.advance(300)
    expect(terminations()).toBe(1)
    await clock.advance(2_000)
    expect(await resolving).toBe('unknown')
    expect(terminations()).toBe(1)
  })

  it.each([
    [{ system: '3', timeline: '4', life: '5', status: 'committed' }, 'committed'],
    [{ system: '3', timeline: '4', life: '5', status: 'aborted' }, 'aborted'],
    // After a crash: what committed may be somebody else's.
    [{ system: '3', timeline: '4', life: '6', status: 'committed' }, 'unknown'],
    [{ system: '3', timeline: '4', life: '6', status: 'aborted' }, 'aborted'],
    [{ system: '3', timeline: '4', life: '5', status: null }, 'unknown'],
    [{ system: '9', timeline: '4', life: '5', status: 'committed' }, 'unknown'],
    [{ system: '3', timeline: '5', life: '5', status: 'aborted' }, 'unknown'],
    [{ system: '3', timeline: '', life: '5', status: null }, 'unknown'],
  ])('reads %j as %s', async (row, expected) => {
    expect(await resolveTrace(scripted(() => [row]).client, trace, 1_000, manualClock())).toBe(expected)
  })

  it('throws what is no answer', async () => {
    const lost = scripted(() => new Error('Connection terminated unexpectedly'))
    await expect(resolveTrace(lost.client, trace, 1_000, manualClock())).rejects.toThrow('Connection terminated')
    expect(await resolveTrace(lost.client, {}, 1_000, manualClock())).toBe('unknown')
  })
})

describe('the report of a lock', () => {
  const nobody: Connections = {
    spare: async () => undefined,
    most: 10,
    take: () => Promise.reject(new Error('not asked')),
    leave() {},
    demandNewest() {},
    close() {},
  }

  it('is empty where no connection is to spare, or the question fails', async () => {
    expect(await new LockReports(nobody, manualClock()).blockersOf('1', 1_000)).toEqual([])
    const { client } = scripted(() => new Error('busy'))
    const left: unknown[] = []
    const connections = { ...nobody, spare: async () => client, leave: (one: unknown) => void left.push(one) }
    expect(await new LockReports(connections, manualClock()).blockersOf('1', 1_000)).toEqual([])
    expect(left).toEqual([client])
  })

  it('looks for causes from the second time-out within a minute on, and every ten seconds', async () => {
    const clock = manualClock()
    const { client, texts } = scripted(() => [])
    const reports = new LockReports({ ...nobody, spare: async () => client }, clock)
    const looks = async (waitMs = 1_000) => {
      await reports.blockersOf('1', waitMs)
      return texts.filter((text) => text.startsWith('BEGIN')).length
    }
    expect(await looks()).toBe(0)
    reports.timedOut(99)
    expect(await looks()).toBe(0)
    reports.timedOut(1_000)
    expect(await looks(99)).toBe(0)
    expect([await looks(), await looks()]).toEqual([1, 1])
    await clock.advance(10_000)
    expect([await looks(), await looks()]).toEqual([2, 2])
    await clock.advance(60_000)
    expect(await looks()).toBe(2)
  })
})

describe('what speaks for the causes of lock time-outs', () => {
  const calm = { session: '7', state: 'active', openMs: 900, stateMs: 5, waitsForUs: false, rows: 2 }
  const facts = { sessions: [{ ...calm, table: null, mode: null }], scans: [], clients: 79, places: 100 }
  const wait = { pid: '1', waitMs: 300, deadlocks: 0, poolMax: 100 }
  const causes = (session: object, about: object = {}, beside: object = {}) =>
    evidenceIn(
      { ...facts, sessions: facts.sessions.map((one) => ({ ...one, ...session })), ...about },
      { ...wait, ...beside },
    ).map(({ cause }) => cause)

  it.each([
    ['nothing of what is usual', causes({}), []],
    ['a transaction open for a second', causes({ openMs: 1_000 }), ['long-transaction']],
    ['one that is not open for as long as the wait', causes({ openMs: 1_999 }, {}, { waitMs: 2_000 }), []],
    ['one that the role may not see', causes({ openMs: null, state: null, stateMs: null }), []],
    ['a circle', causes({ waitsForUs: true }), ['lock-order']],
    ['deadlocks', causes({}, {}, { deadlocks: 2 }), ['lock-order']],
    ['three rows', causes({ rows: 3 }), ['batch']],
    ['a server that is nearly full', causes({}, { clients: 80 }), ['pool']],
    ['a pool that is larger than the server', causes({}, {}, { poolMax: 101 }), ['pool']],
  ])('%s', (_what, found, expected) => expect(found).toEqual(expected))
})
