// Job queues that need Node 22.18.

export * as graphileWorker from 'graphile-worker'
export { PgBoss } from 'pg-boss'
