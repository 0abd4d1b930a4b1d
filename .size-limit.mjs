// How much a user loads through each entry point: everything behind it, bundled, minified and compressed with brotli.
//
// The limits lie about 15 % above what was measured when they were set. To raise one, measure with
// `npm run check -- sizes --verbose`, set it 15 % above the new figure, and say in the changelog what the bytes buy.
// An entry point without a limit, or a limit without an entry point, is an error.

import { fileURLToPath } from 'node:url'
import { entryPointsOf } from './tools/entry-points.mjs'

const limits = {
  '.': '22.2 kB',
  './atomicity': '6.2 kB',
  './effect-guard': '2.6 kB',
  './grpc': '12.8 kB',
  './http/client': '27.5 kB',
  './http/core': '38.8 kB',
  './http/express': '38.5 kB',
  './http/fastify': '38.5 kB',
  './http/fetch': '38.5 kB',
  './http/hono': '38.5 kB',
  './http/koa': '38.5 kB',
  './http/nest': '39 kB',
  './http/node': '38.5 kB',
  './idempotency': '39 kB',
  './identity': '15 kB',
  './kernel': '13.5 kB',
  './retry': '14.2 kB',
  './simulator': '9.1 kB',
  './stores/callback': '52.2 kB',
  './stores/memory': '46 kB',
  './stores/postgres': '62 kB',
  './stores/sqlite': '58 kB',
  './telemetry': '0.5 kB',
  './testing': '65.3 kB',
  './transaction': '21.6 kB',
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
  './kernel',
  './retry',
  './simulator',
  './telemetry',
]

const forNode = { platform: 'node', format: 'esm' }

export default entryPoints.map((entryPoint) => ({
  name: entryPoint.specifier,
  path: entryPoint.script,
  import: '*',
  ...(browserSafe.includes(entryPoint.name)
    ? {}
    : { modifyEsbuildConfig: (/** @type {object} */ config) => ({ ...config, ...forNode }) }),
  limit: limits[/** @type {keyof typeof limits} */ (entryPoint.name)],
}))
