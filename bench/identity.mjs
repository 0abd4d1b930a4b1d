// The fingerprint of a JSON body from its raw bytes, against what people do instead: parse it and print it again.

import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import canonicalize from 'canonicalize'
// By path, since a package can name itself only inside its own scope, and this folder has a package.json for its peers.
import { fingerprint } from '../dist/identity/index.js'
import { furtherBodies, mainBodies } from './bodies.mjs'

export const peers = ['canonicalize']

const ours = 'reprise'
const plain = 'JSON.parse + JSON.stringify + sha256'
const peer = 'JSON.parse + canonicalize + sha256'

/** @type {Record<string, (body: Buffer) => string>} */
const ways = {
  [ours]: (body) => fingerprint({ json: body }),
  // Not a fingerprint: it changes with the order of members. It is the least that work on parsed values costs.
  [plain]: (body) => hash('sha256', JSON.stringify(JSON.parse(body.toString('utf8'))), 'base64url'),
  [peer]: (body) => hash('sha256', canonicalize(JSON.parse(body.toString('utf8'))), 'base64url'),
}

const targets = [
  { against: plain, limit: 3 },
  { against: peer, limit: 1, below: true },
]

/** The cases of this bench, after a check that all subjects do what their names say. */
export function cases() {
  const main = mainBodies.map((body) => ({ ...body, targets }))
  const further = furtherBodies.map((body) => ({ ...body, targets: [] }))
  return [...main, ...further].map(({ name, body, targets: aims }) => {
    check(name, body)
    const subjects = Object.entries(ways).map(([way, run]) => ({ name: way, run: () => run(body) }))
    return { name: `${name} (${body.length} bytes)`, subjects, targets: aims }
  })
}

/**
 * @param {string} name
 * @param {Buffer} body
 */
function check(name, body) {
  const value = JSON.parse(body.toString('utf8'))
  const turned = Buffer.from(JSON.stringify(reversed(value), null, 1))
  const changed = Buffer.from(body.toString('utf8').replace(/[a-z](?="[,}\]])/, '!'))
  // The bodies lose no digits in a double, so ours has to be the very digest of RFC 8785.
  assert.equal(ways[ours](body), `json1-sha256:${ways[peer](body)}`, name)
  assert.equal(ways[ours](turned), ways[ours](body), name)
  assert.equal(ways[peer](turned), ways[peer](body), name)
  assert.notEqual(ways[ours](changed), ways[ours](body), name)
  // And the plain way is no fingerprint, which is why it may be faster.
  assert.notEqual(ways[plain](turned), ways[plain](body), name)
}

/** @param {any} value @returns {any} */
function reversed(value) {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, inner]) => [name, reversed(inner)]),
  )
}
