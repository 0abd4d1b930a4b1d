// The relay: reads the outbox of the service, and publishes to the register. It may run anywhere, and as often as wanted.

import { type Relay, type RelayDomain, type RelayOptions, relay } from 'reprise/messaging'
import { consecutiveBreaker, equalJitter } from 'reprise/retry'
import { httpPublisher } from './wire.js'

/** A relay to the register at an address. Relays of one name share the work; of another name, each publishes all. */
export function actionRelay(db: RelayDomain, url: string, more: Partial<RelayOptions> = {}): Relay {
  return relay(db, { name: 'register', to: httpPublisher(url), types: ['enforcement-action.*'], ...more })
}

/** Short limits for the drill, which waits until the claim of a relay that was killed is over. */
export const quick = {
  poll: '100ms',
  deadline: '2s',
  storeLimit: '1s',
  lease: '5s',
  breaker: consecutiveBreaker({ failures: 5, openFor: equalJitter({ baseMs: 200, capMs: 1_000 }) }),
} as const satisfies Partial<RelayOptions>
