// The command line: `reprise simulate storm|jitter`. A thin layer over the rooms; the world comes in as an argument.

export type { Io } from './io.js'
export { runCommandLine } from './reprise.js'
