// Whatever an error looks like: a classifier answers without throwing, and `no` is never said without its proof.

import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { property } from '../../../test/property.js'
import { defaultClassifier } from './default-classifier.js'
import { httpVerdict } from './http.js'
import { networkClassifier } from './network.js'

const codes = [
  'ECONNRESET',
  'ECONNREFUSED',
  'ENOTFOUND',
  'ETIMEDOUT',
  'EPIPE',
  'UND_ERR_SOCKET',
  'UND_ERR_CONNECT_TIMEOUT',
  'EPROTO',
  'X',
]
const calls = ['connect', 'getaddrinfo', 'bind', 'read', 'write', 'recvmsg']
const failure = fc.record(
  {
    code: fc.constantFrom(...codes),
    syscall: fc.constantFrom(...calls),
    socket: fc.record({ bytesWritten: fc.nat(2), bytesRead: fc.nat(2) }),
    host: fc.constant('a.example'),
    localAddress: fc.constant(undefined),
  },
  { requiredKeys: ['code'] },
)

type Failure = { code: string; syscall?: string; socket?: { bytesWritten: number } }

function isProven(error: Failure): boolean {
  const { code, syscall, socket } = error
  if (syscall !== undefined && ['connect', 'getaddrinfo', 'bind'].includes(syscall)) return true
  if (code === 'UND_ERR_SOCKET') return socket?.bytesWritten === 0
  if (code === 'ECONNRESET') return 'host' in error && 'localAddress' in error
  return syscall === undefined && ['ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT'].includes(code)
}

describe('classifiers', () => {
  property('`no` is never said without proof', [failure], (error) => {
    const happened = networkClassifier(error)?.happened
    expect(happened === 'no').toBe(isProven(error as Failure))
  })

  property(
    'several failures are `no` only if each of them is',
    [fc.array(failure, { minLength: 1, maxLength: 5 })],
    (errors) => {
      const verdict = networkClassifier({ cause: { errors } })
      if (verdict?.happened === 'no') expect(errors.every((error) => isProven(error as Failure))).toBe(true)
    },
  )

  property(
    'anything at all can be classified',
    [fc.anything({ withNullPrototype: true, withObjectString: true })],
    (value) => {
      const verdict = defaultClassifier(value)
      if (verdict !== undefined) expect(['no', 'maybe']).toContain(verdict.happened)
    },
  )

  property(
    'every wait that is understood is at least 0 and not a fraction',
    [fc.integer({ min: 400, max: 599 }), fc.string(), fc.string()],
    (status, first, second) => {
      const fields: Record<string, string> = { 'retry-after': first, 'retry-after-ms': second }
      const verdict = httpVerdict({ status, header: (name) => fields[name] ?? null, nowMs: 0 })
      const { retryAfterMs = 0 } = verdict ?? {}
      expect(retryAfterMs).toBeGreaterThanOrEqual(0)
      expect(retryAfterMs === Number.POSITIVE_INFINITY || Number.isInteger(retryAfterMs)).toBe(true)
    },
  )
})
