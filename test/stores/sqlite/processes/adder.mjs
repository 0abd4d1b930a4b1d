// Adds one to a number, again and again, each time reading it first: an update is lost where two do so at once.

import { pathToFileURL } from 'node:url'

const [bundle = '', file = '', times = ''] = process.argv.slice(2)
const { sqlite } = await import(pathToFileURL(`${bundle}/index.js`).href)
const db = sqlite({ name: 'items', file, deadline: '60s', lockWait: '30s' })
console.log(JSON.stringify(await db.migrate()))
let slept = 0
for (let time = 0; time < Number(times); time += 1) {
  await db.transact(async (/** @type {any} */ tx) => {
    const { rows } = await tx.query('SELECT value FROM counter')
    await new Promise((resolve) => setImmediate(resolve))
    await tx.query('UPDATE counter SET value = ?', [rows[0].value + 1])
  })
  slept += 1
}
await db.close()
console.log(`added ${slept}`)
