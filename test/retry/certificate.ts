// Self-signed certificates made on the spot, so that TLS failures are met on real sockets and no key lies in the
// repository.

import { createSign, generateKeyPairSync, X509Certificate } from 'node:crypto'

/** A key and its certificate, in PEM. */
export interface KeyAndCertificate {
  readonly key: string
  readonly cert: string
}

/** What the certificate says. */
export interface CertificateOptions {
  /** The DNS name it is for. Default `localhost`. */
  readonly name?: string
  /** Until when it is valid, ms since 1970. Default: a day from now. */
  readonly validUntilMs?: number
}

/** A certificate for one DNS name, signed by its own key (X.509 v3, RFC 5280; ECDSA with P-256 and SHA-256). */
export function selfSigned(options: CertificateOptions = {}): KeyAndCertificate {
  const { name = 'localhost', validUntilMs = Date.now() + 86_400_000 } = options
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const algorithm = sequence(objectId('2a8648ce3d040302'))
  const names = sequence(tag(0x31, sequence(objectId('550403'), tag(0x0c, Buffer.from(name)))))
  const extensions = sequence(
    // CA: true, since it signs itself.
    sequence(objectId('551d13'), tag(0x01, Buffer.from([0xff])), tag(0x04, sequence(tag(0x01, Buffer.from([0xff]))))),
    sequence(objectId('551d11'), tag(0x04, sequence(tag(0x82, Buffer.from(name))))),
  )
  const content = sequence(
    tag(0xa0, integer(2)),
    integer(1),
    algorithm,
    names,
    sequence(time(validUntilMs - 2 * 86_400_000), time(validUntilMs)),
    names,
    publicKey.export({ type: 'spki', format: 'der' }),
    tag(0xa3, extensions),
  )
  const signature = createSign('sha256').update(content).sign(privateKey)
  const certificate = sequence(content, algorithm, tag(0x03, Buffer.from([0]), signature))
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: new X509Certificate(certificate).toString(),
  }
}

function tag(kind: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([kind, ...size]), content])
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tag(0x30, ...parts)
}

function objectId(hex: string): Buffer {
  return tag(0x06, Buffer.from(hex, 'hex'))
}

function integer(value: number): Buffer {
  return tag(0x02, Buffer.from([value]))
}

function time(atMs: number): Buffer {
  return tag(0x18, Buffer.from(`${new Date(atMs).toISOString().slice(0, 19).replace(/\D/g, '')}Z`))
}
