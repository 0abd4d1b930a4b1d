// Failures of the network, as Node and undici (the engine of Node's fetch) report them, split into before and after
// sending.
//
// `no` needs proof that no byte of the request left: the system call that failed (nothing is written before connect has
// returned), a check of the certificate (made before the request is written), or a count of the bytes written. Codes
// that have two meanings, ECONNRESET above all, are `maybe` unless the error itself carries the proof.
//
// The verdict is on the exchange the error came from, as its `proof` says. fetch follows redirects by default, so the
// exchange that was refused may be the second one, after the first had its effect: whoever acts on a `no` holds it
// against what was seen to leave (see sent.ts).

import { alongCauses, type Classifier, type ErrorFacts, permanent, transient } from '../verdict.js'

/** The calls of the operating system that come before the first byte. */
const beforeSending = /^(connect|bind|getaddrinfo)$/

/** A repeat would end in the same way. */
const hopeless = /^E(ACCES|PERM|INVAL)$/

/** Codes that are given before the first byte, and never later, even where the system call is not told. */
const unsent = /^(ECONNREFUSED|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT|ERR_HTTP2_GOAWAY_SESSION)$/

/** Codes that are given when the request may have been sent. */
const sent =
  /^(E(PIPE|TIMEDOUT|CONN(RESET|ABORTED)|(NET|HOST)(DOWN|UNREACH))|UND_ERR_(SOCKET|DESTROYED|(HEADERS|BODY)_TIMEOUT|RES_CONTENT_LENGTH_MISMATCH)|ERR_(STREAM_PREMATURE_CLOSE|HTTP2_(SESSION_ERROR|STREAM_(ERROR|CANCEL))))$/

/** Checks of the other side's certificate, by the names that OpenSSL and Node give them. */
const certificate =
  /^(CERT_(HAS_EXPIRED|NOT_YET_VALID|REVOKED|UNTRUSTED)|(DEPTH_ZERO_)?SELF_SIGNED_CERT|UNABLE_TO_(VERIFY_LEAF|GET_ISSUER)|ERR_TLS_CERT_)/

/** Alerts that a TLS server sends only while it has not finished shaking hands (RFC 8446, 6.2). */
const handshakeAlert = /alert.(protocol.version|handshake.failure)/i

const unsentProof = { proof: 'unsent' } as const
const malformed = /* @__PURE__ */ permanent('http-malformed')

/** Failures of the network: see the head of this file. */
export const networkClassifier: Classifier = /* @__PURE__ */ alongCauses((facts) => {
  const { code, name, syscall } = facts
  // Newer versions of undici give it no code.
  if (name === 'HTTPParserError') return malformed
  if (typeof code !== 'string') return undefined
  const isListed = unsent.test(code) || sent.test(code)
  if (typeof syscall === 'string' && beforeSending.test(syscall)) {
    // A word is never input: a code that is not listed is called by what failed.
    const why = isListed ? code : syscall
    return hopeless.test(code) ? permanent(why, 'no', unsentProof) : transient(why, 'no', unsentProof)
  }
  if (isListed) return isProvenUnsent(code, facts) ? transient(code, 'no', unsentProof) : transient(code, 'maybe')
  if (certificate.test(code)) return permanent('tls-certificate', 'no', unsentProof)
  if (/^(EPROTO$|ERR_SSL_)/.test(code)) {
    const isEarly = handshakeAlert.test(`${code} ${facts['message']}`)
    return isEarly ? permanent('tls', 'no', unsentProof) : permanent('tls')
  }
  return code.startsWith('HPE_') ? malformed : undefined
})

function isProvenUnsent(code: string, facts: ErrorFacts): boolean {
  // Another call than those above speaks of something earlier: a datagram that was sent before, and refused.
  if (unsent.test(code)) return facts['syscall'] === undefined
  // undici counts what was handed to the socket. Zero bytes read prove nothing: a server may act and die unheard.
  if (code === 'UND_ERR_SOCKET') return (facts['socket'] as ErrorFacts | undefined)?.['bytesWritten'] === 0
  // Node adds the address to a reset only where the other side left during the TLS handshake.
  if (code === 'ECONNRESET') return 'localAddress' in facts && 'host' in facts
  // Node cancels streams that have no number yet with the error of their session. One that did not connect has sent
  // nothing.
  if (code === 'ERR_HTTP2_STREAM_CANCEL') return isUnconnected(facts['cause'] as ErrorFacts | undefined)
  // RFC 9113, 8.7: a refused stream was not processed, whatever the method.
  return code === 'ERR_HTTP2_STREAM_ERROR' && `${facts['message']}`.endsWith('NGHTTP2_REFUSED_STREAM')
}

// A host with several addresses fails with the errors of all of them.
function isUnconnected(cause: ErrorFacts | undefined): boolean {
  const members = cause?.['errors']
  const errors: readonly (ErrorFacts | undefined)[] = Array.isArray(members) && members.length > 0 ? members : [cause]
  return errors.every((error) => beforeSending.test(`${error?.['syscall']}`))
}

/**
 * Aborts and time-outs by the names the platform gives them. An abort is the caller's own wish and is not repeated.
 * Neither says whether the other side had already acted.
 */
export const abortClassifier: Classifier = /* @__PURE__ */ alongCauses(({ name, code, message }) => {
  // Browsers say no more than this, in their own words: Chromium, Firefox, Safari. Cloudflare's Workers say it of a
  // connection that was cut and of one that was refused.
  if (name === 'TypeError' && /^(Failed to fetch|NetworkError when|Load failed)/.test(`${message}`))
    return transient('fetch-failed', 'maybe')
  if (message === 'Network connection lost.') return transient('fetch-failed', 'maybe')
  if (name === 'AbortError' || code === 'UND_ERR_ABORTED') return permanent('aborted')
  return name === 'TimeoutError' ? transient('timeout', 'maybe') : undefined
})
