// Channels on which a process can listen to what goes on inside it, where the runtime has them.

import { builtin } from './runtime.js'

/** A channel of `node:diagnostics_channel`, as far as it is used here. */
export interface DiagnosticsChannel {
  readonly name: string
  readonly hasSubscribers: boolean
  publish(message: unknown): void
}

/** The diagnostics channel with a name, or undefined where the runtime has none. */
export function diagnosticsChannel(name: string): DiagnosticsChannel | undefined {
  return builtin('node:diagnostics_channel')?.channel(name) as DiagnosticsChannel | undefined
}

/** Listens to a channel of the runtime or of a library from now on, for good. Does nothing where there are none. */
export function onDiagnostics(name: string, listener: (message: unknown) => void): void {
  builtin('node:diagnostics_channel')?.subscribe(name, listener)
}
