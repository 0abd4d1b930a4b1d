// Makes every kind of call inside and outside transactions, to a server that counts, and prints what each came to.
// Whether the guard is loaded is the starter's choice. The address of a plain listener stands in for HTTPS: a
// connection is enough.

import http, { get as namedGet, request as namedRequest } from 'node:http'
import https from 'node:https'
import { createRequire } from 'node:module'
import { memory } from 'reprise/stores/memory'
import { allowEffect, effect } from 'reprise/transaction'

const [origin = '', listenerPort = '', again] = process.argv.slice(2)
// Under another address it is another module, which runs again.
if (again === 'again') await import(`${import.meta.resolve('reprise/effect-guard')}?again`)
const commonHttp = createRequire(import.meta.url)('http')
const secure = `https://127.0.0.1:${listenerPort}/`
const names = [fetch, http.request, http.get, https.request, https.get].map(({ name, length }) => `${name}/${length}`)

/** @type {(make: (answered: (answer: http.IncomingMessage) => void) => http.ClientRequest) => Promise<unknown>} */
const answered = (make) =>
  new Promise((resolve, reject) => {
    const request = make((answer) => answer.resume().on('end', resolve))
    request.on('error', reject).end()
  })

/** @type {Record<string, (path: string) => Promise<unknown>>} */
const calls = {
  fetch: (path) => fetch(origin + path),
  'fetch with a Request': (path) => fetch(new Request(origin + path, { method: 'POST', body: 'x' })),
  'http.request': (path) => answered((done) => http.request(origin + path, done)),
  'http.get': (path) => answered((done) => http.get(new URL(origin + path), done)),
  'named request': (path) => answered((done) => namedRequest(origin + path, { method: 'POST' }, done)),
  'named get': (path) => answered((done) => namedGet({ port: new URL(origin).port, path, host: '127.0.0.1' }, done)),
  'required get': (path) => answered((done) => commonHttp.get(origin + path, done)),
  // The listener speaks no TLS: the call fails, after it has connected.
  'https.request': () => answered((done) => https.request(secure, done)).catch(unlessRefused),
  'https.get': () => answered((done) => https.get(secure, done)).catch(unlessRefused),
}

/** @param {{ code?: string }} error */
function unlessRefused(error) {
  if (error.code === 'EFFECT_IN_TRANSACTION') throw error
}

/** @type {(work: Promise<unknown>) => Promise<unknown>} */
const codeOf = (work) =>
  work.then(
    () => 'done',
    (error) => error.code,
  )

const db = memory({ name: 'guarded' })
const allowing = memory({ name: 'allowing', allowOrigins: [origin] })
/** @type {Record<string, unknown>} */
const came = {}
for (const [name, call] of Object.entries(calls)) {
  const path = `/${name.replaceAll(' ', '-')}`
  came[name] = {
    outside: await codeOf(call(`${path}/outside`)),
    inside: await codeOf(db.transact(() => call(`${path}/inside`))),
    swallowed: await codeOf(db.transact(() => call(`${path}/swallowed`).catch(() => 'swallowed'))),
    permitted: await codeOf(db.transact(() => allowEffect('a test', () => call(`${path}/permitted`)))),
    afterCommit: await codeOf(db.transact(async (tx) => tx.afterCommit(() => call(`${path}/after-commit`)))),
  }
}
const late = db.transact(async () => {
  setTimeout(() => void fetch(`${origin}/late/timer`), 1)
})
const marked = await codeOf(db.transact(async () => effect('mail')))
const allowed = await codeOf(allowing.transact(() => fetch(`${origin}/allowed/origin`)))
console.log(JSON.stringify({ names, came, late: await codeOf(late), marked, allowed }))
