// What other clients make of Retry-After, and what this one makes of it.

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { httpClient } from '../../../src/http/client/index.js'
import { constantDelay, historyOf, httpVerdict, readOnly, retryPolicy } from '../../../src/retry/index.js'
import { manualClock } from '../../../src/testing/index.js'
import { answers, serversOfTest } from '../sockets.js'
import { Flaky, failing, settle, setup } from '../virtual-policy.js'

const nowMs = Date.UTC(2026, 10, 15, 12, 0, 0)
const read = (value: string) =>
  httpVerdict({ status: 503, header: (name) => (name === 'retry-after' ? value : null), nowMs })?.retryAfterMs

describe('values', () => {
  it.each([
    ['got 16: 0 is no wait, not 1 ms', '0', 0],
    ['undici 8, smithy 3.40, openai 6.49: a fraction is no number of seconds', '1.5', undefined],
    ['openai 6.49: a negative number is no wait of the past', '-5', undefined],
    ['undici 8, openai 6.49: an exponent is no number of seconds', '1e3', undefined],
    ['undici 8, openai 6.49: a hexadecimal number is no number of seconds', '0x10', undefined],
    ['openai 6.49: digits before other text are no number of seconds', '10 seconds', undefined],
    ['openai 6.49: text is ignored, and never NaN', 'abc', undefined],
    ['openai 6.49: the year of an ISO date is no number of seconds', '2026-11-15T12:01:00Z', undefined],
    ['undici 8, got 16, smithy 3.40: an ISO date is no HTTP date', '2026-11-15T12:01:00.000Z', undefined],
    ['smithy 3.40, openai 6.49: a past date is no wait, and never a negative one', 'Sun, 06 Nov 1994 08:49:37 GMT', 0],
    ['undici 8: a past date is no wait, and not the backoff', 'Sunday, 06-Nov-94 08:49:37 GMT', 0],
    ['failsafe-go 0.9.7: a date is honoured, not only seconds', 'Sun, 15 Nov 2026 12:01:00 GMT', 60_000],
    ['smithy 3.40: twenty digits are a number, and not NaN', '99999999999999999999', 1e23],
  ])('%s', (_title, value, expected) => {
    expect(read(value)).toBe(expected)
  })

  it('smithy 3.40, openai 6.49: an asctime date is UTC, whatever the zone of the process', async () => {
    const program = fileURLToPath(new URL('../processes/retry-after.mjs', import.meta.url))
    const dates = ['Sun, 15 Nov 2026 12:01:00 GMT', 'Sunday, 15-Nov-26 12:01:00 GMT', 'Sun Nov 15 12:01:00 2026']
    for (const [TZ, offsetMinutes] of [
      ['America/New_York', 300],
      ['Asia/Kathmandu', -345],
    ] as const) {
      const { stdout } = await promisify(execFile)(process.execPath, [program, ...dates], {
        env: { ...process.env, TZ },
      })
      const missedMs = [0, 0, offsetMinutes * 60_000]
      expect(JSON.parse(stdout)).toEqual({ offsetMinutes, missedMs, read: [60_000, 60_000, 60_000] })
    }
  })
})

describe('waits', () => {
  const server = serversOfTest()
  const asks = (retryAfterMs: number) => new Flaky('no', { retryAfterMs })

  it('smithy 3.40: a wait of more than the backoff and 5 s is kept in full', async () => {
    const { policy, clock } = setup()
    const { body, calls } = failing(1, () => asks(20_000))
    await settle(clock, policy.run(readOnly(), body))
    expect(calls).toHaveLength(2)
    expect(clock.monotonicMs()).toBe(20_000)
  })

  it('undici 8, ky 2: a wait that is too long ends the call, with the value on the error', async () => {
    const { policy, clock } = setup()
    const { body, calls } = failing(1, () => asks(120_000))
    const error = await settle(clock, policy.run(readOnly(), body)).catch((reason: unknown) => reason)
    expect(calls).toHaveLength(1)
    expect(clock.monotonicMs()).toBe(0)
    expect(historyOf(error)).toMatchObject({ stop: 'retry-after', attempts: [{ verdict: { retryAfterMs: 120_000 } }] })
  })

  it('github/copilot-cli #2760: a wait past the deadline ends the call at once', async () => {
    const { policy, clock } = setup({ deadline: '5s' })
    const { body, calls } = failing(1, () => asks(6_000))
    const error = await settle(clock, policy.run(readOnly(), body)).catch((reason: unknown) => reason)
    expect(calls).toHaveLength(1)
    expect(clock.monotonicMs()).toBe(0)
    expect(historyOf(error)?.stop).toBe('retry-after')
  })

  it('openai 6.49, effect 4: twenty digits overflow no timer; the call ends', async () => {
    const headers = { 'retry-after': '99999999999999999999' }
    const { origin, requests } = await server([answers(503, { headers }), answers(200)])
    const clock = manualClock()
    const client = httpClient({ policy: { clock, backoff: constantDelay(1), maxRetryAfter: '24d' } })
    expect((await client.fetch(origin)).status).toBe(503)
    expect(requests).toHaveLength(1)
    expect(clock.pendingTimers).toBe(0)
  })

  it('openai 6.49: a timer of more than 2^31 - 1 ms does not fire at once', async () => {
    // On the host's own timers, since it is they who overflow.
    const overflows: unknown[] = []
    const onWarning = ({ name }: Error) => overflows.push(name)
    process.on('warning', onWarning)
    const policy = retryPolicy({ classify: () => asks25Days, maxRetryAfter: '30d', layer: 'own' })
    const { body, calls } = failing(1, () => new Error('busy'))
    const abort = new AbortController()
    const watched = policy.run(readOnly(), body, { signal: abort.signal }).catch((reason: unknown) => reason)
    await new Promise((resolve) => setTimeout(resolve, 30))
    abort.abort('enough')
    expect(await watched).toBe('enough')
    process.off('warning', onWarning)
    expect(calls).toHaveLength(1)
    expect(overflows).toEqual([])
  })
})

const asks25Days = { help: 'transient', happened: 'no', why: 'busy', retryAfterMs: 25 * 86_400_000 } as const
