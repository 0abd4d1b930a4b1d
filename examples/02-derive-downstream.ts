// One intent makes several calls. Each sends a key of its own, and a repeat sends the same ones again.

import { deriveKey, type Key, withIntent } from 'reprise'
import { parseKey } from 'reprise/identity'

const sent = new Map<string, Key[]>()

async function call(step: string): Promise<void> {
  const key = deriveKey(step) // from the intent in flight, also after an await
  sent.set(step, [...(sent.get(step) ?? []), key])
}

async function fulfil(order: string): Promise<void> {
  await withIntent({ key: parseKey(order) }, async () => {
    await call('capture')
    await call('mail')
  })
}

await fulfil('order-4711')
await fulfil('order-4711') // the repeat
await fulfil('order-4712')

for (const [step, [first, repeat, other]] of sent) {
  console.log(`${step}: ${first}`)
  console.log(`  repeated with the same key: ${first === repeat}; another order has another: ${first !== other}`)
}

try {
  deriveKey('capture')
} catch (error) {
  console.log('outside of an intent:', (error as { code: string }).code)
}
