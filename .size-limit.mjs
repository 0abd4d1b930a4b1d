// How much a user loads through each entry point: everything behind it, bundled, minified and compressed with brotli.
// At the end, what an ordinary program loads.
//
// The limits lie about 15 % above what was measured when they were set. To raise one, measure with
// `npm run check -- sizes --verbose`, set it 15 % above the new figure, and say in the changelog what the bytes buy.
// An entry point without a limit, or a limit without an entry point, is an error.

import { fileURLToPath } from 'node:url'
import { entryPointsOf } from './tools/entry-points.mjs'

const limits = {
  '.': '27.6 kB',
  './atomicity': '21.3 kB',
  './brokers/memory': '5.8 kB',
  './drill': '4.7 kB',
  './effect-guard': '2.6 kB',
  './grpc': '17.5 kB',
  './http/client': '27.5 kB',
  './http/core': '45.2 kB',
  './http/express': '52.2 kB',
  './http/fastify': '51.8 kB',
  './http/fetch': '44.3 kB',
  './http/hono': '44.5 kB',
  './http/koa': '44.5 kB',
  './http/nest': '46.3 kB',
  './http/node': '44.6 kB',
  './idempotency': '46.6 kB',
  './identity': '15 kB',
  './intents': '3 kB',
  './kernel': '15.9 kB',
  './mcp': '27.4 kB',
  './messaging': '53.8 kB',
  './retry': '19.5 kB',
  './sequence': '11.8 kB',
  './simulator': '9.1 kB',
  './stores/callback': '85.6 kB',
  './stores/memory': '66.7 kB',
  './stores/postgres': '105 kB',
  './stores/sqlite': '96.5 kB',
  './telemetry': '0.9 kB',
  './testing': '86.3 kB',
  './transaction': '27.2 kB',
}

const entryPoints = entryPointsOf(fileURLToPath(new URL('.', import.meta.url)))
const without = entryPoints.filter((entryPoint) => !(entryPoint.name in limits)).map((entryPoint) => entryPoint.name)
const nowhere = Object.keys(limits).filter((name) => !entryPoints.some((entryPoint) => entryPoint.name === name))
if (without.length > 0) throw new Error(`Entry points without a limit in .size-limit.mjs: ${without.join(', ')}`)
if (nowhere.length > 0) throw new Error(`Limits in .size-limit.mjs without an entry point: ${nowhere.join(', ')}`)

/** Entry points that also load in a browser; the others import modules of Node, which nobody bundles. */
const browserSafe = [
  '.',
  './atomicity',
  './grpc',
  './http/client',
  './identity',
  './intents',
  './kernel',
  './retry',
  './simulator',
  './telemetry',
]

const forNode = { platform: 'node', format: 'esm' }

const whole = entryPoints.map((entryPoint) => ({
  name: entryPoint.specifier,
  path: entryPoint.script,
  import: '*',
  ...(browserSafe.includes(entryPoint.name)
    ? {}
    : { modifyEsbuildConfig: (/** @type {object} */ config) => ({ ...config, ...forNode }) }),
  limit: limits[/** @type {keyof typeof limits} */ (entryPoint.name)],
}))

/**
 * What an ordinary program loads that retries: what makes a repeat safe by default, and none of the parts that a
 * bundler leaves out. Compressed with gzip, as docs/decisions/0013-weight-of-retry.md counts, and close to what was
 * measured, so that a part which slips in is noticed.
 */
const ordinaryRetry = {
  name: 'reprise/retry, an ordinary program',
  path: 'dist/retry/index.js',
  import: '{ retryPolicy, fullJitter, keyed }',
  gzip: true,
  limit: '14 kB',
}

/** What a page loads that keeps its keys in localStorage: the promise of docs/guides/keep-one-key-per-intent.md. */
const keeperInBrowser = {
  name: 'reprise/intents, in a browser',
  path: 'dist/intents/index.js',
  import: '{ intents }',
  gzip: true,
  limit: '2 kB',
}

export default [...whole, ordinaryRetry, keeperInBrowser]
