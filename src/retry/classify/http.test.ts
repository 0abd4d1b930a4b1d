import { describe, expect, it } from 'vitest'
import { retryAfterReadMs, retryAfterShapes } from '../../../test/retry/retry-after.js'
import { manualClock } from '../../testing/index.js'
import { type HttpFacts, httpClassifier, httpClassifierFor, httpVerdict } from './http.js'

const nowMs = retryAfterReadMs

function verdictOn(status: number, headers: Record<string, string> = {}, more: Partial<HttpFacts> = {}) {
  const fields = new Headers(headers)
  return httpVerdict({ status, header: (name) => fields.get(name), nowMs, ...more })
}

describe('httpVerdict by status', () => {
  it.each([
    [421, 'transient', 'no'],
    [425, 'transient', 'no'],
    [429, 'transient', 'no'],
    [408, 'transient', 'maybe'],
    [503, 'transient', 'maybe'],
    [500, 'transient', 'maybe'],
    [502, 'transient', 'maybe'],
    [504, 'transient', 'maybe'],
    [507, 'transient', 'maybe'],
    [520, 'transient', 'maybe'],
    [527, 'transient', 'maybe'],
    [529, 'transient', 'maybe'],
    [599, 'transient', 'maybe'],
    [501, 'permanent', 'maybe'],
    [505, 'permanent', 'maybe'],
    [511, 'permanent', 'maybe'],
    [400, 'permanent', 'no'],
    [401, 'permanent', 'no'],
    [404, 'permanent', 'no'],
    [409, 'permanent', 'no'],
    [412, 'permanent', 'no'],
    [422, 'permanent', 'no'],
    [451, 'permanent', 'no'],
    [460, 'permanent', 'maybe'],
    [499, 'permanent', 'maybe'],
  ])('%d is %s and %s', (status, help, happened) => {
    expect(verdictOn(status)).toMatchObject({ help, happened, why: `http-${status}` })
  })

  it('success, redirects and numbers that are no status have no verdict', () => {
    for (const status of [100, 200, 204, 302, 304, 399, 600, 0, -1, Number.NaN])
      expect(verdictOn(status)).toBeUndefined()
  })

  it('only 429, 503 and 529 mean overload, only 409 and 412 a conflict', () => {
    const statuses = Array.from({ length: 200 }, (_, index) => index + 400)
    expect(statuses.filter((status) => verdictOn(status)?.overload)).toEqual([429, 503, 529])
    expect(statuses.filter((status) => verdictOn(status)?.conflict)).toEqual([409, 412])
  })

  it('an origin that refuses before processing makes 408 and 503 a no, and nothing else', () => {
    const statuses = Array.from({ length: 200 }, (_, index) => index + 400)
    const changed = statuses.filter(
      (status) => verdictOn(status)?.happened !== verdictOn(status, {}, { refusesBeforeProcessing: true })?.happened,
    )
    expect(changed).toEqual([408, 503])
  })

  it('a retryable problem of a Reprise server makes 409 and 503 transient and no', () => {
    const problem = { type: 'https://reprise.example/problems/in-flight', retryable: true }
    const refused = { help: 'transient', happened: 'no', why: 'http-409', proof: 'refused' }
    expect(verdictOn(409, {}, { problem })).toEqual({ ...refused, inFlight: true })
    const type = 'https://reprise.example/problems/outcome-unknown'
    expect(verdictOn(409, {}, { problem: { ...problem, type } })).toEqual(refused)
    expect(verdictOn(503, {}, { problem })).toMatchObject({ help: 'transient', happened: 'no', overload: true })
    expect(verdictOn(500, {}, { problem })).toMatchObject({ happened: 'maybe' })
    expect(verdictOn(422, {}, { problem })).toMatchObject({ help: 'permanent' })
    for (const other of [
      { type: 'about:blank', retryable: true },
      { retryable: true },
      { ...problem, retryable: false },
    ]) {
      expect(verdictOn(503, {}, { problem: other })).toMatchObject({ happened: 'maybe' })
      expect(verdictOn(409, {}, { problem: other })).toMatchObject({ help: 'permanent' })
    }
  })
})

describe('a 409 where keys are honoured', () => {
  const problem = { type: 'urn:reprise:problem:in-flight' }
  const inFlight = { help: 'transient', happened: 'no', why: 'http-409', inFlight: true, proof: 'refused' }
  const conflict = { help: 'permanent', happened: 'no', why: 'http-409', conflict: true, proof: 'refused' }

  it('is in flight where it asks to come back, or says so', () => {
    const after = { 'retry-after': '2' }
    expect(verdictOn(409, after, { honoursKeys: true })).toEqual({ ...inFlight, retryAfterMs: 2_000 })
    expect(verdictOn(409, {}, { honoursKeys: true, problem })).toEqual(inFlight)
  })

  it('is a conflict where it says nothing, where keys are not honoured, and where the status is another', () => {
    expect(verdictOn(409, {}, { honoursKeys: true })).toEqual(conflict)
    expect(verdictOn(409, { 'retry-after': 'soon' }, { honoursKeys: true })).toEqual(conflict)
    expect(verdictOn(409, { 'retry-after': '2' })).toEqual({ ...conflict, retryAfterMs: 2_000 })
    expect(verdictOn(409, {}, { problem })).toEqual(conflict)
    expect(verdictOn(412, { 'retry-after': '2' }, { honoursKeys: true, problem })).not.toHaveProperty('inFlight')
  })
})

describe('Retry-After', () => {
  it.each(retryAfterShapes)('%j is %s ms', (value, retryAfterMs) => {
    expect(verdictOn(503, { 'retry-after': value })?.retryAfterMs).toBe(retryAfterMs)
    expect(verdictOn(429, { 'retry-after': value })?.retryAfterMs).toBe(retryAfterMs)
  })

  it.each([
    ['250', 250],
    ['0', 0],
    ['1.5', 2],
    ['-1', undefined],
    ['1e3', undefined],
    ['', undefined],
    ['soon', undefined],
    [' 20', 20],
  ])('retry-after-ms %j is %s ms', (value, retryAfterMs) => {
    expect(verdictOn(503, { 'retry-after-ms': value })?.retryAfterMs).toBe(retryAfterMs)
  })

  it('of two waits the longer one counts, and a malformed one not at all', () => {
    expect(verdictOn(503, { 'retry-after-ms': '1500', 'retry-after': '2' })?.retryAfterMs).toBe(2_000)
    expect(verdictOn(503, { 'retry-after-ms': '5000', 'retry-after': '2' })?.retryAfterMs).toBe(5_000)
    expect(verdictOn(503, { 'retry-after-ms': 'x', 'retry-after': '2' })?.retryAfterMs).toBe(2_000)
    expect(verdictOn(503, { 'retry-after-ms': '7', 'retry-after': 'x' })?.retryAfterMs).toBe(7)
  })
})

describe.each(['x-should-retry', 'stripe-should-retry'])('%s', (name) => {
  it('false forbids a repeat', () => {
    expect(verdictOn(503, { [name]: 'false' })).toMatchObject({
      help: 'transient',
      happened: 'maybe',
      doNotRepeat: true,
    })
    expect(verdictOn(400, { [name]: 'false' })).toMatchObject({ help: 'permanent', doNotRepeat: true })
  })

  it('true makes a repeat worthwhile, and does not say what happened', () => {
    expect(verdictOn(409, { [name]: 'true' })).toMatchObject({ help: 'transient', happened: 'no' })
    expect(verdictOn(501, { [name]: 'true' })).toMatchObject({ help: 'transient', happened: 'maybe' })
    expect(verdictOn(500, { [name]: 'true' })).toMatchObject({ help: 'transient', happened: 'maybe' })
  })

  it.each(['', 'yes', '1', 'TRUE', 'true, true', 'untrue'])('%j is ignored', (value) => {
    expect(verdictOn(500, { [name]: value })).toEqual(verdictOn(500))
    expect(verdictOn(400, { [name]: value })).toEqual(verdictOn(400))
  })

  it('of two opposite answers, false wins', () => {
    const both = { 'x-should-retry': 'true', 'stripe-should-retry': 'true', [name]: 'false' }
    expect(verdictOn(500, both)?.doNotRepeat).toBe(true)
  })
})

describe('httpClassifier', () => {
  const headers = { 'retry-after': '3' }
  it.each<[string, unknown]>([
    ['a Response', new Response(null, { status: 503, headers })],
    ['an error with status and Headers (generated SDKs)', { status: 503, headers: new Headers(headers) }],
    ['an error with statusCode and plain headers (undici)', { statusCode: 503, headers }],
    ['names in another case', { status: 503, headers: { 'Retry-After': '3' } }],
    ['values in a list', { status: 503, headers: { 'retry-after': ['3'] } }],
    ['values that are numbers', { status: 503, headers: { 'retry-after': 3 } }],
    [
      'an error with a Response (ky)',
      Object.assign(new Error(), { response: new Response(null, { status: 503, headers }) }),
    ],
    [
      'an error with a Node response (got)',
      { code: 'ERR_NON_2XX_3XX_RESPONSE', response: { statusCode: 503, headers } },
    ],
    ['an error with both (axios)', { status: 503, response: { status: 503, headers } }],
    ['a status outside and headers inside', { status: 503, response: { headers } }],
  ])('understands %s', (_shape, error) => {
    expect(httpClassifier(error)).toMatchObject({ why: 'http-503', retryAfterMs: 3_000, overload: true })
  })

  it.each<[string, unknown]>([
    ['a success', new Response('', { status: 200 })],
    ['a word for a status', { status: 'error' }],
    ['digits for a status', { status: '503' }],
    ['the exit status of a process', { status: 1 }],
    ['a fraction', { status: 500.5 }],
    ['nothing', undefined],
    ['null', null],
    ['text', '503'],
    ['a number', 503],
    ['a response that is null', { response: null }],
  ])('has no answer for %s', (_shape, error) => {
    expect(httpClassifier(error)).toBeUndefined()
  })

  it('survives getters and headers that throw', () => {
    const boom = () => {
      throw new Error('mine')
    }
    expect(httpClassifier(Object.defineProperty({}, 'status', { get: boom }))).toBeUndefined()
    expect(httpClassifier(Object.defineProperty({}, 'response', { get: boom }))).toBeUndefined()
    expect(httpClassifier({ status: 503, headers: { get: boom } })).toBeUndefined()
    expect(httpClassifier({ status: 503, headers: { 'retry-after': { toString: boom } } })).toBeUndefined()
    expect(httpClassifier({ status: 503, headers: 7 })).toMatchObject({ why: 'http-503' })
  })

  it('compares dates with the clock it is given, and believes what is declared of the origin', () => {
    const clock = manualClock({ wallMs: nowMs })
    const classify = httpClassifierFor({ clock, refusesBeforeProcessing: true })
    const error = { status: 503, headers: { 'retry-after': 'Sun, 15 Nov 2026 12:00:09 GMT' } }
    expect(classify(error)).toMatchObject({ retryAfterMs: 9_000, happened: 'no' })
  })
})
