import { describe, expect, it } from 'vitest'
import { manualClock } from '../../../testing/index.js'
import { type Connections, knownConnection } from '../connection/connections.js'
import type { PostgresAnswer, PostgresPoolClient } from '../options.js'
import { blockersOf } from './lock-report.js'
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
  it('is empty where no connection is to spare, or the question fails', async () => {
    const nobody: Connections = {
      spare: async () => undefined,
      take: () => Promise.reject(new Error('not asked')),
      leave() {},
      demandNewest() {},
      close() {},
    }
    expect(await blockersOf(nobody, '1')).toEqual([])
    const { client, released } = scripted(() => new Error('busy'))
    expect(await blockersOf({ ...nobody, spare: async () => client }, '1')).toEqual([])
    expect(released).toEqual([true])
  })
})
