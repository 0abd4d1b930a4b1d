// The routes of the subject whose effect is outside: leased twins, each with the recovery that its receiver allows.

import { setTimeout as wait } from 'node:timers/promises'
import {
  type Answer,
  AnswerError,
  type AnswerJson,
  type LeasedRouteOptions,
  reply,
} from '../../../src/http/core/index.js'
import {
  didNotHappen,
  happened,
  hold,
  type Lease,
  type Recover,
  rerunKeyed,
  resolve,
} from '../../../src/idempotency/index.js'
import { type Charge, type ChargeCall, charged, firstTimes, parseCharge } from './charge.js'
import type { Sink } from './sink.js'

/** What a handler gets. */
interface LeasedChargeCall extends ChargeCall {
  readonly lease: Lease
}

/** How unknown outcomes are recovered. */
type Recovery = Recover<Pick<ChargeCall, 'principal'>, AnswerJson, never>

/** A route. Its principal is added where it is mounted. */
export interface LeasedSubjectRoute {
  readonly method: 'POST'
  readonly path: string
  readonly options: Omit<LeasedRouteOptions<unknown, Charge>, 'principal' | 'trusts' | 'recover'> & {
    readonly recover: Recovery
  }
  readonly handle: (told: LeasedChargeCall) => Promise<Answer>
}

// Work whose end the test decides about, in whatever process it goes on.
async function letBy(sink: Sink, { lease, principal }: LeasedChargeCall): Promise<void> {
  while (!sink.mayGoOn(principal[0]) && !lease.signal.aborted) await wait(20)
}

const behind = { respond: 'async' } as const

/** Where the status of a route's work is mounted. */
export const statusPath = (path: string): string => `${path}/work/:id`

/** All of them, over the sink that has their effects. */
export function leasedRoutes(sink: Sink): readonly LeasedSubjectRoute[] {
  const isFirst = firstTimes()
  const on = (
    path: string,
    recover: Recovery,
    handle: LeasedSubjectRoute['handle'],
    more: Pick<LeasedSubjectRoute['options'], 'respond'> = {},
  ): LeasedSubjectRoute => {
    const name = `post${path}`
    const options = {
      name,
      parse: parseCharge,
      fields: { omit: ['/clientTimestamp'] },
      lease: '1s',
      margin: '100ms',
      recover,
      ...more,
    } as const
    return { method: 'POST', path, options, handle }
  }
  // The receiver honours keys: a repeat with a known one gets the first one's id.
  const charge = async ({ lease, principal, input }: LeasedChargeCall): Promise<Answer> => {
    const id = await lease.effect('charge', async ({ key }) => {
      if (input.ms > 0) await wait(input.ms)
      return sink.chargeOnce(principal[0], key)
    })
    return charged(id, input.amount)
  }
  // This one does not, so whoever calls it twice is found out.
  const chargeAgain = async ({ lease, principal, input }: LeasedChargeCall): Promise<Answer> => {
    const id = await lease.effect('charge', ({ key }) => sink.charge(principal[0], key))
    return charged(id, input.amount)
  }
  const untilLet = (call: LeasedChargeCall): Promise<void> => letBy(sink, call)
  const ask: Recovery = resolve(({ key, input }) => {
    const id = input === undefined ? undefined : sink.find(input.principal[0], key('charge'))
    if (id === undefined) return didNotHappen()
    const headers = [['content-type', 'application/json; charset=utf-8']] as const
    return happened({ status: 201, headers, text: JSON.stringify({ id }) })
  })
  return [
    on('/leased/charges', rerunKeyed('1h'), charge),
    on('/leased/slow', rerunKeyed('1h'), charge),
    on('/async/charges', rerunKeyed('1h'), async (call) => untilLet(call).then(() => charge(call)), behind),
    on('/async/asked', ask, async (call) => chargeAgain(call).finally(() => untilLet(call)), behind),
    on('/leased/throw-after-effect', ask, async (told) => {
      const answer = await chargeAgain(told)
      if (isFirst('throw-after-effect', told)) throw new Error('after the effect')
      return answer
    }),
    on('/leased/not-sent', hold(), async (told) => {
      if (isFirst('not-sent', told)) throw told.lease.notSent(new AnswerError(reply(503, { reason: 'not sent' })))
      return chargeAgain(told)
    }),
    on('/leased/ambiguous', hold(), async (told) => {
      const answer = await chargeAgain(told)
      if (isFirst('ambiguous', told)) throw new Error('no reply')
      return answer
    }),
  ]
}
