// The subject on Koa.

import { idempotent, idempotentLeased } from '../../../../src/http/koa/index.js'
import { statusPath } from '../leased-routes.js'
import type { Serve } from '../mounted.js'
import { principal, serveKoa } from './koa-app.js'

/** Serves it. */
export const serve: Serve = (subject) =>
  serveKoa(subject, (on) => {
    const { db, atomic, leased } = subject
    for (const { method, path, options, handle } of atomic) {
      on(method, path, idempotent(db, { ...options, principal }, handle))
    }
    for (const { method, path, options, handle } of leased) {
      const handler = idempotentLeased(db, { ...options, principal }, handle)
      on(method, path, handler)
      on('GET', statusPath(path), handler.status)
    }
  })
