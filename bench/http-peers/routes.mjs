// The routes of a subject as docs/reference/conformance.md describes them, for any framework and any layer. Handlers
// know nothing of keys.

import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'

/**
 * @typedef {object} Told what a handler gets
 * @property {string} user
 * @property {number} amount
 * @property {URLSearchParams} query
 */

/**
 * @typedef {object} Answer
 * @property {number} status
 * @property {Record<string, string | string[]>} [headers]
 * @property {object} [json]
 * @property {Uint8Array} [bytes]
 * @property {readonly string[]} [parts] a body of unknown length
 * @property {string} [redirect]
 * @property {boolean} [notSent] the handler proves that nothing happened
 */

/**
 * @typedef {object} SubjectRoute
 * @property {'POST' | 'PUT'} method
 * @property {string} path with parameters as `:name`
 * @property {'required' | 'optional' | 'strict' | 'waiting'} key how the layer is to be set up
 * @property {boolean} [form] takes a form in the place of JSON
 * @property {(told: Told) => Promise<Answer>} handle
 */

/** Who calls; undefined: nobody says. */
export const userOf = (/** @type {string | undefined} */ authorization) =>
  /^Bearer ([\w-]{1,100})$/.exec(authorization ?? '')?.[1]

/**
 * Whether the body has the shape that the routes ask for. Looked at before the layer, as every framework here allows.
 */
export const isCharge = (/** @type {unknown} */ body) => Number.isSafeInteger(Object(body).amount)

/** What is read from a form: its fields. */
export async function fieldsOf(/** @type {Uint8Array} */ bytes, /** @type {string} */ type) {
  const form = await new Response(bytes, { headers: { 'content-type': type } }).formData()
  return Object.fromEntries(form.entries())
}

const location = (/** @type {string} */ id) => `/charges/${id}`

/** @type {readonly { path: string, answer: (id: string, told: Told) => Answer }[]} */
const oddAnswers = [
  { path: '/redirect303', answer: (id) => ({ status: 303, redirect: location(id) }) },
  { path: '/empty204', answer: () => ({ status: 204 }) },
  { path: '/empty201', answer: (id) => ({ status: 201, headers: { Location: location(id) } }) },
  { path: '/binary', answer: () => ({ status: 200, bytes: Uint8Array.of(0xff, 0xfe, 0x00, 0x01, 0x80) }) },
  {
    path: '/gzip',
    answer: (id) => ({
      status: 200,
      headers: { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' },
      bytes: gzipSync(JSON.stringify({ id })),
    }),
  },
  {
    path: '/stream',
    answer: (id) => ({ status: 200, headers: { 'Content-Type': 'application/json' }, parts: ['{"id":"', id, '"}'] }),
  },
  {
    path: '/large',
    answer: (id, { query }) => ({ status: 200, json: { id, more: '.'.repeat(Number(query.get('bytes') ?? 0)) } }),
  },
  {
    path: '/setcookie',
    answer: (id, { amount }) => ({
      status: 201,
      headers: { 'Set-Cookie': ['session=1; HttpOnly', 'theme=dark'] },
      json: { id, amount },
    }),
  },
  { path: '/multipart', answer: (id) => ({ status: 201, json: { id } }) },
]

/** @param {ReturnType<typeof import('./ledger.mjs').openLedger>} ledger @returns {readonly SubjectRoute[]} */
export function subjectRoutes(ledger) {
  const seen = new Set()
  const isFirst = (/** @type {string} */ route, /** @type {Told} */ { user }) => {
    const name = `${route} ${user}`
    return !seen.has(name) && seen.add(name) !== undefined
  }
  /** @param {Told} told @returns {Promise<Answer>} */
  const charge = async ({ user, amount, query }) => {
    const ms = Number(query.get('ms') ?? 0)
    if (ms > 0) await wait(ms)
    const id = ledger.charge(user)
    return { status: 201, headers: { Location: `/charges/${id}`, ETag: `"${id}"` }, json: { id, amount } }
  }
  /** @type {(path: string, handle: SubjectRoute['handle'], more?: Partial<SubjectRoute>) => SubjectRoute} */
  const post = (path, handle, more = {}) => ({ method: 'POST', path, key: 'required', handle, ...more })
  const refusing = (/** @type {number} */ status) => async () => ({ status, json: { reason: 'no', id: randomUUID() } })
  const breaking = (/** @type {string} */ name) => async (/** @type {Told} */ told) => {
    const answer = await charge(told)
    if (isFirst(name, told)) throw new Error('after the effect')
    return answer
  }
  return [
    post('/charges', charge),
    post('/charges/:account', charge),
    { ...post('/charges/:account', charge), method: 'PUT' },
    post('/optional', charge, { key: 'optional' }),
    post('/strict', charge, { key: 'strict' }),
    post('/slow', charge),
    post('/waiting', charge, { key: 'waiting' }),
    post('/fail500', async (told) =>
      isFirst('fail500', told) ? { status: 500, json: { reason: 'down' } } : charge(told),
    ),
    post('/limited', async (told) =>
      isFirst('limited', told) ? { status: 429, json: { reason: 'limit' } } : charge(told),
    ),
    post('/fail422', refusing(422)),
    post('/fail402', refusing(402)),
    // Their effects lie outside of the layer's store, as all effects do with layers that share no transaction with the
    // handler.
    post('/leased/charges', charge),
    post('/leased/slow', charge),
    post('/leased/throw-after-effect', breaking('throw-after-effect')),
    post('/leased/ambiguous', breaking('ambiguous')),
    post('/leased/not-sent', async (told) =>
      isFirst('not-sent', told) ? { status: 503, json: { reason: 'not sent' }, notSent: true } : charge(told),
    ),
    ...oddAnswers.map(({ path, answer }) =>
      post(path, async (told) => answer(ledger.charge(told.user), told), path === '/multipart' ? { form: true } : {}),
    ),
  ]
}
