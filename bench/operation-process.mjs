// One of many processes that use one server: node bench/operation-process.mjs <url> <connections>, a child that does so
// many calls of a way whenever it is told to, and says when it has.

import pg from 'pg'
import { waysOf } from './operation-ways.mjs'

const [url = '', connections = '1'] = process.argv.slice(2)
const most = Number(connections)
const pool = new pg.Pool({ connectionString: url, max: most, min: most, idleTimeoutMillis: 0 })
const ways = await waysOf(pool, 0)

process.on('message', async (/** @type {{ way: string, count: number }} */ { way, count }) => {
  let left = count
  const work = async () => {
    for (; left > 0; ) {
      left -= 1
      await ways[way]?.()
    }
  }
  try {
    await Promise.all(Array.from({ length: most }, work))
    process.send?.({})
  } catch (error) {
    process.send?.({ failed: String(error) })
  }
})
process.on('disconnect', () => process.exit())
process.send?.({})
