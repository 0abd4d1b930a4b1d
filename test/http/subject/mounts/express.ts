// The subject on Express.

import { idempotent, idempotentLeased } from '../../../../src/http/express/index.js'
import { statusPath } from '../leased-routes.js'
import type { Serve } from '../mounted.js'
import { principal, serveExpress } from './express-app.js'

/** Serves it. */
export const serve: Serve = (subject) =>
  serveExpress(subject, (app) => {
    const { db, atomic, leased } = subject
    for (const { method, path, options, handle } of atomic) {
      const handler = idempotent(db, { ...options, principal }, handle)
      if (method === 'POST') app.post(path, handler)
      else app.put(path, handler)
    }
    for (const { path, options, handle } of leased) {
      const handler = idempotentLeased(db, { ...options, principal }, handle)
      app.post(path, handler).get(statusPath(path), handler.status)
    }
  })
