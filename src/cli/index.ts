// The command line: what a policy does to a service, and what a store remembers. A thin layer over the rooms; the world comes in as an argument.

export type { Io } from './io.js'
export { runCommandLine } from './reprise.js'
