// A process that emits is killed with SIGKILL at every fault point on its way to COMMIT and back: its messages are
// there exactly when its effect is, and another process that takes the intent up makes no second one of either.

import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { mintKey } from '../../../src/identity/index.js'
import { commits, killAt, postgresProxy } from '../../../src/testing/index.js'
import { transactionFaultPoints } from '../../../src/transaction/index.js'
import { bundledScript } from '../../bundled-script.js'
import { joinStores, keepTable } from '../../faults/operations/fault-table.js'
import { worlds } from '../windows/worlds.js'

const { run: emits } = bundledScript(new URL('./processes/emits.mjs', import.meta.url), {
  identity: 'identity',
  testing: 'testing',
  postgres: 'stores/postgres',
  sqlite: 'stores/sqlite',
})

/** Fault points that only some stores have, and those at which a COMMIT without an answer is looked up. */
const shared = ['sqlite.sharing', 'sqlite.shared']
const lookedUp: readonly string[] = ['transaction.resolving', 'transaction.resolved']
/** Where the effect is committed when the process dies. */
const committed: readonly string[] = ['transaction.committed', ...lookedUp, 'sqlite.shared']

const cells = worlds
  .slice(0, 2)
  .flatMap(([store, inWorld]) =>
    [...transactionFaultPoints, ...(store === 'SQLite' ? shared : [])].map((point) => ({ store, inWorld, point })),
  )
const table: string[][] = []

describe('a process that emits, killed', () => {
  it.each(cells)('at $point, on $store: messages are there exactly when the effect is', ({ store, inWorld, point }) =>
    inWorld(async ({ maker, raw, place }) => {
      await (await maker()).migrate()
      await raw('create table ledger (intent text not null, run text not null)')
      const [intent, key] = [randomUUID(), mintKey()]
      const found = async () => {
        const runs = (await raw(`select run from ledger where intent = '${intent}'`)).map(({ run }) => String(run))
        const rows = await raw('select key, number, data from reprise_message order by key, number')
        return { runs, messages: rows.map((row) => [row['key'], Number(row['number']), row['data']]) }
      }
      const allOf = (run: string) => {
        const data = JSON.stringify({ run })
        const messages = [
          [intent, 1, data],
          [intent, 2, data],
          [`${intent} beside`, 1, data],
        ]
        return { runs: [run], messages }
      }
      const proxy = store === 'PostgreSQL' && lookedUp.includes(point) ? await throughProxy(place) : undefined
      const environment = {
        ...killAt(point),
        ...(store === 'SQLite' && lookedUp.includes(point) ? { LOST: '1' } : {}),
        ...(shared.includes(point) ? { TOGETHER: '1' } : {}),
      }
      const ended = await emits([proxy?.place ?? place, key, intent], environment)
      expect(ended).toEqual({ signal: 'SIGKILL', stdout: '', stderr: `reprise-fault ${point}:1=kill\n` })
      if (proxy !== undefined) expect(proxy.armed.fired).toHaveLength(1)
      await proxy?.close()
      const left = await found()
      const isCommitted = committed.includes(point)
      expect(left).toEqual(isCommitted ? allOf(left.runs[0] ?? '') : { runs: [], messages: [] })
      // Another process takes the intent up, and one more after it.
      const first = await emits([place, key, intent])
      const second = await emits([place, key, intent])
      expect([first, second]).toEqual([first, first])
      expect(first).toMatchObject({ signal: null, stderr: '' })
      if (isCommitted) expect(first.stdout).toBe(left.runs[0])
      expect(await found()).toEqual(allOf(first.stdout))
      table.push([`\`${point}\``, store, isCommitted ? 'the effect and its 3 messages' : 'nothing', '1', '3, no gap'])
    }),
  )

  it('at every point, as the page says', () => {
    expect(table).toHaveLength(cells.length)
    const head = ['killed at', 'store', 'found then', 'effects after two repeats', 'messages']
    keepTable('emits', head, joinStores(table, 1), 'message-faults.md')
  })
})

/** A way to the server on which the answer to COMMIT is lost. */
async function throughProxy(place: string) {
  const url = new URL(place)
  const proxy = await postgresProxy({ upstream: { host: url.hostname, port: Number(url.port) } })
  const armed = proxy.arm({ statement: commits, at: 'before-answer', action: 'fin' })
  url.port = String(proxy.port)
  return { place: url.href, armed, close: () => proxy.close() }
}
