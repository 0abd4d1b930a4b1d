// What cannot be met on a socket; the rest is in test/retry/network.test.ts.

import { describe, expect, it } from 'vitest'
import { abortClassifier, networkClassifier } from './network.js'

describe('networkClassifier', () => {
  it.each([
    ['connect', 'no'],
    ['bind', 'no'],
    ['getaddrinfo', 'no'],
    ['read', 'maybe'],
    ['write', 'maybe'],
    ['connectivity', 'maybe'],
    [undefined, 'maybe'],
  ])('ETIMEDOUT in %s is %s', (syscall, happened) => {
    expect(networkClassifier({ code: 'ETIMEDOUT', syscall })).toEqual({
      help: 'transient',
      happened,
      why: 'ETIMEDOUT',
      ...(happened === 'no' && { proof: 'unsent' }),
    })
  })

  it('never puts a code that it does not know into a word', () => {
    expect(networkClassifier({ code: 'E<script>', syscall: 'connect' })).toEqual({
      help: 'transient',
      happened: 'no',
      why: 'connect',
      proof: 'unsent',
    })
    expect(networkClassifier({ code: 'ENOTFOUND', syscall: 'getaddrinfo' })?.why).toBe('getaddrinfo')
    expect(networkClassifier({ code: 'E<script>', syscall: 'read' })).toBeUndefined()
    expect(networkClassifier({ code: 'ERR_SSL_<script>' })?.why).toBe('tls')
  })

  it('looks for the proof in the error that a client has wrapped under the same code', () => {
    const wrapped = (cause: object) => ({ name: 'RequestError', ...cause, syscall: undefined, cause })
    expect(networkClassifier(wrapped({ code: 'ECONNRESET', syscall: 'connect' }))).toMatchObject({ happened: 'no' })
    expect(networkClassifier(wrapped({ code: 'ECONNRESET', syscall: 'read' }))).toMatchObject({ happened: 'maybe' })
    expect(networkClassifier(wrapped({ code: 'ENOTFOUND', syscall: 'getaddrinfo' }))).toMatchObject({ happened: 'no' })
    const other = { code: 'ETIMEDOUT', cause: { code: 'ECONNREFUSED', syscall: 'connect' } }
    expect(networkClassifier(other)).toMatchObject({ happened: 'maybe', why: 'ETIMEDOUT' })
  })

  it('does not take anything that is not found for a host, nor a refused datagram for a refused connection', () => {
    expect(networkClassifier({ code: 'ENOTFOUND' })).toBeUndefined()
    expect(networkClassifier({ code: 'ECONNREFUSED', syscall: 'recvmsg' })).toMatchObject({ happened: 'maybe' })
  })

  it.each(['EACCES', 'EPERM', 'EINVAL'])('%s while connecting is permanent', (code) => {
    expect(networkClassifier({ code, syscall: 'connect' })).toMatchObject({ help: 'permanent', happened: 'no' })
    expect(networkClassifier({ code, syscall: 'open' })).toBeUndefined()
  })

  it('believes that nothing was written only when the count says 0', () => {
    const error = (socket: unknown) => ({ code: 'UND_ERR_SOCKET', socket })
    expect(networkClassifier(error({ bytesWritten: 0 }))).toMatchObject({ happened: 'no' })
    for (const socket of [{ bytesWritten: 1, bytesRead: 0 }, { bytesWritten: '0' }, {}, undefined, null, 7]) {
      expect(networkClassifier(error(socket))).toMatchObject({ happened: 'maybe' })
    }
  })

  it.each([
    'CERT_NOT_YET_VALID',
    'CERT_REVOKED',
    'CERT_UNTRUSTED',
    'SELF_SIGNED_CERT_IN_CHAIN',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  ])('%s is found before the request is sent', (code) => {
    const said = { help: 'permanent', happened: 'no', why: 'tls-certificate', proof: 'unsent' }
    expect(networkClassifier({ code })).toEqual(said)
  })

  it('a code that only looks like one of a certificate is not known', () => {
    expect(networkClassifier({ code: 'CERT_UPLOAD_FAILED' })).toBeUndefined()
    expect(networkClassifier({ code: 'MY_CERT_HAS_EXPIRED' })).toBeUndefined()
  })

  it.each([
    ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', 'no'],
    ['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', 'no'],
    ['ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC', 'maybe'],
    ['ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR', 'maybe'],
    ['EPROTO', 'maybe'],
  ])('%s is permanent, and %s', (code, happened) => {
    const proof = happened === 'no' && { proof: 'unsent' }
    expect(networkClassifier({ code })).toEqual({ help: 'permanent', happened, why: 'tls', ...proof })
  })
})

describe('abortClassifier', () => {
  it('tells aborts from time-outs by their names', () => {
    expect(abortClassifier({ name: 'AbortError' })).toMatchObject({ help: 'permanent', happened: 'maybe' })
    expect(abortClassifier({ code: 'UND_ERR_ABORTED' })).toMatchObject({ help: 'permanent', happened: 'maybe' })
    expect(abortClassifier({ cause: { name: 'TimeoutError' } })).toMatchObject({ help: 'transient', happened: 'maybe' })
    expect(abortClassifier(new Error('aborted'))).toBeUndefined()
  })

  it.each([
    ['Chromium', new TypeError('Failed to fetch')],
    ['Firefox', new TypeError('NetworkError when attempting to fetch resource.')],
    ['Safari', new TypeError('Load failed')],
    ["Cloudflare's Workers", Object.assign(new Error('Network connection lost.'), { retryable: true })],
  ])('knows a lost connection by the words of %s: it may have happened', (_runtime, error) => {
    expect(abortClassifier(error)).toMatchObject({ help: 'transient', happened: 'maybe', why: 'fetch-failed' })
  })
})
