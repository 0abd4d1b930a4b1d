// How the subject is started in this process.

import { rmSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { atomicRoutes } from './atomic-routes.js'
import { leasedRoutes } from './leased-routes.js'
import { openLedger } from './ledger.js'
import type { Serve, Served } from './mounted.js'
import { openSink } from './sink.js'

/** The adapters that the subject can be served by. */
export const adapterNames = ['node', 'express', 'fastify', 'hono', 'koa', 'nest', 'fetch'] as const

/** The name of an adapter. */
export type AdapterName = (typeof adapterNames)[number]

/** The forms for handlers that exist. They have atomic routes only. */
export const dropInNames = ['express-drop-in', 'fastify-drop-in', 'hono-drop-in', 'koa-drop-in'] as const

/** What the subject can be mounted by. */
export type MountName = AdapterName | (typeof dropInNames)[number]

/** What a start is told. */
export interface StartOptions {
  /** The folder of the sink, to share it between processes. Default: a new one, removed at the end. */
  readonly sink?: string
}

const mounts: Readonly<Record<MountName, () => Promise<{ readonly serve: Serve }>>> = {
  node: () => import('./mounts/node.js'),
  express: () => import('./mounts/express.js'),
  fastify: () => import('./mounts/fastify.js'),
  hono: () => import('./mounts/hono.js'),
  koa: () => import('./mounts/koa.js'),
  nest: () => import('./mounts/nest.js'),
  fetch: () => import('./mounts/fetch.js'),
  'express-drop-in': () => import('./mounts/express-drop-in.js'),
  'fastify-drop-in': () => import('./mounts/fastify-drop-in.js'),
  'hono-drop-in': () => import('./mounts/hono-drop-in.js'),
  'koa-drop-in': () => import('./mounts/koa-drop-in.js'),
}

/** Loads what serves the subject by an adapter, and no other framework. */
export async function serveBy(adapter: MountName): Promise<Serve> {
  return (await mounts[adapter]()).serve
}

/** Starts the subject in this process, on `sqlite:<file>` or `postgres://…`. */
export async function startSubject(
  adapter: MountName,
  databaseUrl: string,
  { sink: folder }: StartOptions = {},
): Promise<Served> {
  const serve = await serveBy(adapter)
  const ownFolder = folder === undefined ? await mkdtemp(join(tmpdir(), 'reprise-sink-')) : undefined
  // What is asked of it is asked on machines that are busy with many tests: 500 at once take their time there.
  const ledger = await openLedger(databaseUrl, { deadline: '60s', bodyLimit: '30s' })
  const sink = openSink(folder ?? (ownFolder as string))
  const served = await serve({
    db: ledger.db,
    atomic: atomicRoutes(),
    leased: leasedRoutes(sink),
    effects: async (user) => (await ledger.effects(user)) + sink.count(user),
  })
  return {
    url: served.url,
    async close() {
      await served.close()
      await ledger.close()
      if (ownFolder !== undefined) rmSync(ownFolder, { recursive: true, force: true })
    },
  }
}
