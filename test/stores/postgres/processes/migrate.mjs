// Migrates, in a process of its own, and says from where to where.

import { pathToFileURL } from 'node:url'
import pg from 'pg'

const [bundle = '', url = ''] = process.argv.slice(2)
const { postgres } = await import(pathToFileURL(bundle).href)
const pool = new pg.Pool({ connectionString: url })
console.log(JSON.stringify(await postgres({ pool, name: 'process', schema: 'two' }).migrate()))
await pool.end()
