// Makes one keyed POST with each of several HTTP clients, set up to repeat it, at addresses that it is given, and prints
// what each of them showed to its user: node run.mjs '[{"client":"got","url":"http://127.0.0.1:4700/charges","key":"k"}]'.

import axios from 'axios'
import axiosRetry from 'axios-retry'
import got from 'got'
import ky from 'ky'
import OpenAI from 'openai'
import Stripe from 'stripe'
import { Agent, RetryAgent, request } from 'undici'

const body = { amount: 5 }
// Nobody waits long here; what is repeated, and how often, is as each client has it by default, or as little as makes it
// repeat a POST at all.
const repeats = 4

/** Each gives the status that its user sees, and throws what its user has to catch. */
const clients = {
  async stripe(url, key) {
    const { hostname, port } = new URL(url)
    const stripe = new Stripe('sk_test_1', { host: hostname, port, protocol: 'http', maxNetworkRetries: repeats })
    const made = await stripe.charges.create({ amount: 5, currency: 'eur' }, { idempotencyKey: key })
    return made.lastResponse.statusCode
  },
  async openai(url, key) {
    const client = new OpenAI({ apiKey: 'k', baseURL: url, maxRetries: repeats })
    const { response } = await client.post('/charges', { body, headers: { 'idempotency-key': key } }).withResponse()
    return response.status
  },
  async got(url, key) {
    const retry = { limit: repeats, methods: ['POST'], calculateDelay: soon }
    return (await got.post(url, { json: body, headers: { 'idempotency-key': key }, retry })).statusCode
  },
  async ky(url, key) {
    const retry = { limit: repeats, methods: ['post'], delay: () => 50 }
    return (await ky.post(url, { json: body, headers: { 'idempotency-key': key }, retry })).status
  },
  async 'axios-retry'(url, key) {
    const client = axios.create()
    // As its readme has it for requests that carry a key.
    const retryCondition = (error) => axiosRetry.isNetworkError(error) || axiosRetry.isRetryableError(error)
    axiosRetry(client, { retries: repeats, retryCondition, retryDelay: () => 50 })
    return (await client.post(url, body, { headers: { 'idempotency-key': key } })).status
  },
  async undici(url, key) {
    const dispatcher = new RetryAgent(new Agent(), { maxRetries: repeats, methods: ['POST'], minTimeout: 50 })
    const headers = { 'idempotency-key': key, 'content-type': 'application/json' }
    const answer = await request(url, { method: 'POST', body: JSON.stringify(body), headers, dispatcher })
    await answer.body.dump()
    return answer.statusCode
  },
}

function soon({ computedValue }) {
  return Math.min(computedValue, 50)
}

async function show({ client, url, key }) {
  try {
    return { status: await clients[client](url, key) }
  } catch (error) {
    const status = error.statusCode ?? error.status ?? error.response?.statusCode ?? error.response?.status
    return { failed: typeof status === 'number' ? status : String(error.code ?? error.name) }
  }
}

const cells = JSON.parse(process.argv[2] ?? '[]')
process.stdout.write(JSON.stringify(await Promise.all(cells.map(show))))
process.exit(0)
