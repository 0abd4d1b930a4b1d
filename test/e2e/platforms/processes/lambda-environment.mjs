// What a function of Lambda lives in, as far as it can tell: its module is loaded once, and called with one event after
// another. Between two calls the test stops this process, as Lambda freezes it.

import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'

const [script = ''] = process.argv.slice(2)
const { handler } = createRequire(import.meta.url)(script)

/** As much of a function's context as ours use. */
const context = { getRemainingTimeInMillis: () => 120_000 }

console.log('"ready"')
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await handler(JSON.parse(line), context)))
}
process.exit()
