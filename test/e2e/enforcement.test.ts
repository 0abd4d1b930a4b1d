// The enforcement example as real processes that are killed, and its command where transactions meet.

import { randomUUID } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { readFileSync } from 'node:fs'
import { type TransactionAttemptEvent, transactionAttempt } from 'reprise/telemetry'
import { type FaultPoints, faultPoints } from 'reprise/testing'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type Action, createAction, migrate } from '../../examples/enforcement/actions.js'
import { isGood, type Result } from '../../examples/enforcement/drill.js'
import { callerMs, plan } from '../../examples/enforcement/plan.js'
import { openStore, type Store } from '../../examples/enforcement/store.js'
import { root } from '../markdown.js'
import { freshDatabase } from '../servers/fresh-database.js'
import { withClient } from '../servers/postgres.js'
import { until } from '../servers/server-process.js'
import { startCommand } from './service-process.js'

const { url } = await freshDatabase()

const killed = [
  ['client', 'client.answered'],
  ['service', 'transaction.before-commit'],
  ['service', 'transaction.committed'],
  ['relay', 'relay.published'],
  ['register', 'consumer.handled'],
  ['register', 'consumer.committed'],
].map(([process, point]) => ({ process, point, signal: 'SIGKILL' }))

describe('npm run examples -- enforcement --drill', () => {
  it.each([
    ['SQLite', []],
    ['PostgreSQL', ['--url', url]],
  ])('kills every process on %s, and there is one action and one entry of each', async (_engine, more) => {
    const args = ['examples', 'enforcement', '--drill', '--json', ...more]
    const { code, stdout, stderr } = await startCommand({}, args).ended
    expect(code, stdout + stderr).toBe(0)
    const lines = stdout.trimEnd().split('\n')
    const result = JSON.parse(lines.at(-1) ?? '') as Result
    expect(result).toMatchObject({ expected: 12, actions: 12, downstream: 12, kills: killed })
    // Both that were killed between an effect and word of it made somebody send once more.
    expect(result.duplicatesDropped).toBeGreaterThanOrEqual(2)
    // One arrived, and was rolled back by a kill.
    expect(result.wire).toBeGreaterThan(result.downstream + result.duplicatesDropped)
    // Three at once and one under another key for the first action; the client and the service were killed after COMMIT.
    expect(result.requests).toBeGreaterThanOrEqual(result.expected + 5)
    // One of them was rolled back by a kill, one found its action by the natural key.
    expect(result.attempts).toBeGreaterThanOrEqual(result.expected + 2)
    expect(result.repeats).toBeGreaterThanOrEqual(1)
    for (const { process, point } of killed) expect(stdout).toMatch(new RegExp(`^${process} +${point} +SIGKILL `, 'm'))
    expect(stdout).toMatch(/^downstream +12$/m)
  })

  it('leaves nothing behind in a database', async () => {
    const left = `select nspname as name from pg_namespace where nspname like 'enforcement%'
      union select relname from pg_class where relname like 'enforcement%' or relname like 'reprise%'`
    expect((await withClient(url, (client) => client.query(left))).rows).toEqual([])
  })

  const good: Result = {
    expected: 2,
    requests: 3,
    attempts: 3,
    repeats: 0,
    wire: 3,
    duplicatesDropped: 1,
    actions: 2,
    downstream: 2,
    kills: killed as Result['kills'],
  }

  it.each([
    ['an action too many', { actions: 3 }],
    ['an action too few', { actions: 1 }],
    ['an entry too many', { downstream: 3 }],
    ['an entry too few', { downstream: 1 }],
    ['more entries and duplicates than what arrived', { wire: 2 }],
    ['a kill that did not happen', { kills: good.kills.slice(1) }],
  ])('fails with %s', (_what, differs) => {
    expect(isGood(good)).toBe(true)
    expect(isGood({ ...good, ...differs })).toBe(false)
  })
})

it('npm run examples -- enforcement tells the same story on PostgreSQL as on SQLite', async () => {
  const args = ['examples', 'enforcement']
  const { code, stdout, stderr } = await startCommand({}, [...args, '--url', url]).ended
  expect(code, stderr).toBe(0)
  expect(stdout).toBe(readFileSync(`${root}/examples/enforcement/story.txt`, 'utf8'))
})

it.each([[['--nope']], [['now']], [['--url', 'mysql://root:secret@localhost/shop']]])(
  'npm run examples -- enforcement refuses %j in one line',
  async (more) => {
    const { code, stdout, stderr } = await startCommand({}, ['examples', 'enforcement', ...more]).ended
    const line = 'npm run examples -- enforcement takes --drill, --json and --url postgres://user@host:port/database.\n'
    expect([code, stdout, stderr.endsWith(line)]).toEqual([2, '', true])
    expect(stderr).not.toContain('secret')
  },
)

it('plans the two seconds of the caller, and nothing beyond them', () => {
  const { wayBackMs, poolMs, attemptMs, retryMs, reserveMs } = plan
  expect(wayBackMs + poolMs + attemptMs + retryMs + reserveMs).toBe(callerMs)
  expect(retryMs).toBeGreaterThan(attemptMs)
})

describe('an action whose transaction meets another one on PostgreSQL', () => {
  let store: Store
  let points: FaultPoints

  beforeAll(async () => {
    // A session looks for deadlocks as soon as it waits.
    await withClient(url, (client) =>
      client.query(`alter database ${new URL(url).pathname.slice(1)} set deadlock_timeout = '1ms'`),
    )
    store = openStore(url)
    await migrate(store)
    points = faultPoints()
  })

  afterAll(async () => {
    points.disarm()
    await store.close()
  })

  const create = (caseId: string, violationCode: string): Promise<{ created: boolean; action: Action }> =>
    store.db.transact((tx) => createAction(store, tx, { caseId, violationCode }), {
      isolation: 'serializable',
      deadline: '240s',
      bodyLimit: '120s',
      lockWait: '60s',
    })

  const states = (): string[] => {
    const seen: string[] = []
    const listener = (message: unknown): void => {
      const { sqlState, delayMs } = message as TransactionAttemptEvent
      if (delayMs !== undefined) seen.push(sqlState ?? '')
    }
    subscribe(transactionAttempt.name, listener)
    onTestFinished(() => void unsubscribe(transactionAttempt.name, listener))
    return seen
  }

  const eventsOf = async (caseId: string): Promise<number[]> => {
    const text = 'select version from reprise_message where subject = $1 order by version'
    const { rows } = await withClient(url, (client) => client.query(text, [`case/${caseId}`]))
    return rows.map(({ version }) => Number(version))
  }

  it('is repeated as a whole after a serialization failure', async () => {
    const caseId = randomUUID()
    const seen = states()
    const stopped = points.stopAt('transaction.body-done')
    const slow = create(caseId, 'noise')
    await stopped.reached
    // It has counted the actions of the case; now there is one more.
    expect(await create(caseId, 'smoke')).toMatchObject({ created: true, action: { number: 1 } })
    stopped.release()
    expect(await slow).toMatchObject({ created: true, action: { number: 2 } })
    expect(seen).toEqual(['40001'])
    expect(await eventsOf(caseId)).toEqual([1, 2])
  })

  it('is repeated as a whole after a deadlock', async () => {
    const caseId = randomUUID()
    await create(caseId, 'noise')
    const seen = states()
    const stopped = points.stopAt('transaction.body-done')
    await withClient(url, async (other) => {
      await other.query('begin')
      await other.query(`set local deadlock_timeout = '200s'`)
      // What the action needs at its end, to number its event.
      await other.query('select 1 from reprise_head where key = $1 for update', [`case/${caseId}`])
      const action = create(caseId, 'smoke')
      await stopped.reached
      const waiting = other.query('insert into enforcement_action values ($1, $2, 7)', [caseId, 'smoke'])
      const waits =
        "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like 'insert into enforcement%'"
      await until(
        async () => (await withClient(url, (client) => client.query(waits))).rows.length > 0,
        'the other one to wait for the action',
      )
      stopped.release()
      await waiting
      await other.query('rollback')
      expect(await action).toMatchObject({ created: true, action: { number: 2 } })
    })
    expect(seen[0]).toBe('40P01')
    expect(await eventsOf(caseId)).toEqual([1, 2])
  })
})
