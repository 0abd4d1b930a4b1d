// A payment at a gateway outside of the database. Its process is killed before the call, after the gateway has charged,
// and after the outcome was stored. The next process calls with the same key: it waits until the claim of the dead one
// is over, and the gateway has charged once.

import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Key, printKeyField, scope } from 'reprise'
import { leased, rerunKeyed } from 'reprise/idempotency'
import { sqlite } from 'reprise/stores/sqlite'
import { armFromEnvironment, killAt } from 'reprise/testing'

/** The service: charges an order at the gateway, once. */
async function charge(file: string, gateway: string, order: string): Promise<void> {
  armFromEnvironment() // for the story; in production nobody arms fault points
  const db = sqlite({ file, name: 'shop' })
  const charge = leased('charge', {
    store: db,
    scope: () => scope('tenant-1'),
    key: (number: string) => `order-${number}` as Key,
    window: '7d',
    lease: '500ms', // for the story; 30 s is a good start
    margin: '100ms',
    recover: rerunKeyed('24h'), // the gateway remembers keys for a day
    run: async (lease) => {
      const response = await lease.effect('capture', ({ key, signal }) =>
        fetch(gateway, { method: 'POST', headers: { 'idempotency-key': printKeyField(key) }, signal }),
      )
      return { receipt: await response.text() }
    },
  })
  const end = await charge.outcome(order)
  if (end.outcome === 'succeeded') console.log(`${end.value.receipt}, ${end.replayed ? 'from memory' : 'the body ran'}`)
  await db.close()
}

/** The story: each order is charged by a process that is killed, and then by one that is not. */
async function tell(): Promise<void> {
  const receipts = new Map<string, string>()
  const gateway = createServer((request, response) => {
    const key = String(request.headers['idempotency-key'])
    receipts.set(key, receipts.get(key) ?? `receipt ${receipts.size + 1}`)
    response.end(receipts.get(key))
  }).listen(0, '127.0.0.1')
  await once(gateway, 'listening')
  const url = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`
  const folder = mkdtempSync(join(tmpdir(), 'reprise-'))
  const file = join(folder, 'shop.db')
  const db = sqlite({ file, name: 'shop' })
  await db.migrate()
  const run = (order: string, faults: object): Promise<string> =>
    new Promise((resolve) => {
      const env = { ...process.env, ...faults }
      execFile(process.execPath, [fileURLToPath(import.meta.url), file, url, order], { env }, (error, stdout) =>
        resolve(error?.signal ? `killed by ${error.signal}, answered nothing` : stdout.trim()),
      )
    })
  for (const [index, point] of ['leased.before-effect', 'leased.after-effect', 'leased.completed'].entries()) {
    const order = String(4711 + index)
    console.log(`order ${order}, at ${point}`)
    console.log(`  first process:  ${await run(order, killAt(point))}`)
    console.log(`  charges so far: ${receipts.size}`)
    console.log(`  second process: ${await run(order, {})}`)
    console.log(`  charges so far: ${receipts.size}`)
  }
  await db.close()
  gateway.closeAllConnections()
  gateway.close()
  rmSync(folder, { recursive: true })
}

const [, , file, gateway, order] = process.argv
if (file === undefined || gateway === undefined || order === undefined) await tell()
else await charge(file, gateway, order)
