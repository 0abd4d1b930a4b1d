// The client: has a key before it sends anything, and sends the same one until it is answered or its time is over.

import { httpClient } from 'reprise/http/client'
import { faultPoint } from 'reprise/kernel'
import { fullJitter } from 'reprise/retry'
import type { Action, Command } from './actions.js'
import { callerMs } from './plan.js'

/** What somebody wants, under a key that was minted once and is kept until the answer is. */
export interface Intent {
  readonly key: string
  readonly command: Command
}

/** What the service said. */
export interface Answer {
  readonly status: number
  /** Whether it came from memory. */
  readonly replayed: boolean
  readonly action: Action
}

/** A client of the service at an address. @param patience How long it waits, and how often it asks; all in all. */
export function actionClient(
  url: string,
  patience = { deadline: callerMs, attempts: 5 },
): (intent: Intent) => Promise<Answer> {
  const { origin } = new URL(url)
  const client = httpClient({
    honoursKeys: [origin],
    trusts: [origin], // it may know how long is left
    policy: { ...patience, backoff: fullJitter({ baseMs: 50, capMs: 400 }) },
  })
  return async ({ key, command }) => {
    const answer = await client.read(`${origin}/actions`, 'json', {
      method: 'POST',
      key,
      headers: { authorization: 'Bearer officer-7', 'content-type': 'application/json' },
      body: JSON.stringify(command),
    })
    await faultPoint('client.answered') // for the drill: whoever dies here has an answer that nobody knows of
    const { status, headers } = answer.response
    if (!answer.ok) throw new Error(`The service answered ${status}.`)
    return { status, replayed: headers.get('idempotent-replayed') === 'true', action: answer.value as Action }
  }
}
