// The relay, a process of its own: reads the outbox, and publishes to the service that started it.

import { relay } from 'reprise/messaging'
import { consecutiveBreaker, equalJitter } from 'reprise/retry'
import { faultPoints } from 'reprise/testing'
import { openLedger } from '../ledger.js'
import { settingsFrom } from '../settings.js'
import { ParentPublisher } from './wire.js'

const longestEndMs = 10_000

// Between the answer of the service and the word to the store: what was published is published again.
function killWhenPublished(): void {
  faultPoints().at('relay.published', () => void process.kill(process.pid, 'SIGKILL'))
}

async function main(): Promise<void> {
  const ending = new AbortController()
  const end = (): void => {
    setTimeout(() => process.exit(1), longestEndMs).unref()
    ending.abort()
  }
  process.once('SIGTERM', end)
  process.once('disconnect', end)
  if (!process.connected) end() // the service was gone before we listened
  process.on('SIGINT', () => undefined) // Ctrl-C reaches us too: the service says when it is time
  const ledger = openLedger(settingsFrom(process.env).database)
  const out = relay(ledger.db, {
    name: 'payment-events',
    to: new ParentPublisher(killWhenPublished),
    // Short, so that whoever has killed a relay sees the next one go on: the claim of the dead one ends with its lease.
    lease: '4s',
    deadline: '2s',
    storeLimit: '900ms',
    poll: '250ms',
    breaker: consecutiveBreaker({ failures: 5, openFor: equalJitter({ baseMs: 200, capMs: 2_000 }) }),
  })
  await out.run({ signal: ending.signal })
  await ledger.close()
  if (process.connected) process.disconnect()
}

main().catch((error) => {
  console.error(`The relay ended: ${error}`)
  process.exit(1)
})
