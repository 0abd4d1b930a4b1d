// A process is killed right before its COMMIT, another one right after it. Neither could tell its caller anything. The
// next process calls with the same key: it charges where nothing had happened, and hands out the stored receipt where
// it had.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Key, scope } from 'reprise'
import { sqlite } from 'reprise/stores/sqlite'
import { armFromEnvironment, killAt } from 'reprise/testing'

/** The service: charges an order, once. */
async function charge(file: string, order: string): Promise<void> {
  armFromEnvironment() // for the story; in production nobody arms fault points
  const db = sqlite({ file, name: 'shop' })
  let ran = false
  const receipt = await db.transact(
    async (tx) => {
      ran = true
      await tx.query('INSERT INTO charge (order_number, amount_minor) VALUES (?, ?)', [order, 1200])
      return { order, charged: 1200 }
    },
    { key: { scope: scope('tenant-1', 'charge'), key: `order-${order}` as Key }, content: { value: { amount: 1200 } } },
  )
  console.log(`answered: ${JSON.stringify(receipt)}, ${ran ? 'the body ran' : 'from memory'}`)
  await db.close()
}

/** The story: each order is charged by a process that is killed, and then by one that is not. */
async function tell(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-'))
  const file = join(folder, 'shop.db')
  const db = sqlite({ file, name: 'shop' })
  await db.migrate()
  await db.transact((tx) => tx.query('CREATE TABLE charge (order_number TEXT, amount_minor INTEGER)'))
  const charges = async (order: string) => {
    const count = 'SELECT count(*) AS charges FROM charge WHERE order_number = ?'
    const { rows } = await db.transact((tx) => tx.query<{ charges: number }>(count, [order]), { readOnly: true })
    return rows[0]?.charges
  }
  const run = (order: string, faults: object) => {
    const env = { ...process.env, ...faults }
    const { signal, stdout } = spawnSync(process.execPath, [fileURLToPath(import.meta.url), file, order], { env })
    return signal === null ? String(stdout).trim() : `killed by ${signal}, answered nothing`
  }
  const story = { '4711': 'transaction.before-commit', '4712': 'transaction.committed' }
  for (const [order, point] of Object.entries(story)) {
    console.log(`order ${order}, at ${point}`)
    console.log(`  first process:  ${run(order, killAt(point))}`)
    console.log(`  charges:        ${await charges(order)}`)
    console.log(`  second process: ${run(order, {})}`)
    console.log(`  charges:        ${await charges(order)}`)
  }
  await db.close()
  rmSync(folder, { recursive: true })
}

const [, , file, order] = process.argv
if (file === undefined || order === undefined) await tell()
else await charge(file, order)
