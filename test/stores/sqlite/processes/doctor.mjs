// Looks at a file on a small disk as it fills up, or as it is: a list of codes in each line.

import { statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [bundle = '', folder = '', what = ''] = process.argv.slice(2)
const { sqlite } = await import(pathToFileURL(`${bundle}/index.js`).href)
const file = join(folder, 'patient.db')

const look = async (/** @type {string} */ when) => {
  const db = sqlite({ name: 'patient', file })
  const findings = await db.doctor()
  await db.close()
  console.log(JSON.stringify([when, ...findings.map((/** @type {any} */ { code }) => code)]))
}

if (what === 'fill') {
  const maker = sqlite({ name: 'maker', file })
  await maker.migrate()
  await maker.close()
  await look('small')
  const { bavail, bsize } = statfsSync(folder)
  writeFileSync(join(folder, 'ballast'), Buffer.alloc(Math.max(0, bavail * bsize - 256 * 1024)))
  await look('full')
} else await look('read-only')
