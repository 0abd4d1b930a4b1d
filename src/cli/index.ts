// The command line: simulates policies and works on stores. A thin layer over the other modules. Everything outside of
// it (terminal, files, environment) comes in as an argument.

export type { Io } from './io.js'
export { runCommandLine } from './reprise.js'
