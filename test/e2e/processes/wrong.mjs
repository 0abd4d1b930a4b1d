// What a proof loads in its processes: the wrong way to pay.

export { input, world } from './payments.mjs'

/** @param {string} intent @param {Awaited<ReturnType<typeof import('./payments.mjs').world>>} opened */
export const operation = (intent, { wrong }) => wrong(intent)
