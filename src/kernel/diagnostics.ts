// How a process hears what goes on inside it, where the runtime has a way: channels to listen to, and warnings of what
// a program should know and no error says.

import { builtin } from './runtime.js'

/** A channel of `node:diagnostics_channel`, as far as it is used here. */
export interface DiagnosticsChannel {
  readonly name: string
  readonly hasSubscribers: boolean
  publish(message: unknown): void
}

/** The diagnostics channel with a name, or undefined where the runtime has none. */
export function diagnosticsChannel(name: string): DiagnosticsChannel | undefined {
  return builtin<typeof import('node:diagnostics_channel')>('node:diagnostics_channel')?.channel(name) as
    | DiagnosticsChannel
    | undefined
}

/** Listens to a channel of the runtime or of a library from now on, for good. Does nothing where there are none. */
export function onDiagnostics(name: string, listener: (message: unknown) => void): void {
  builtin<typeof import('node:diagnostics_channel')>('node:diagnostics_channel')?.subscribe(name, listener)
}

interface Process {
  readonly emitWarning?: (message: string, options: { readonly type: string; readonly code: string }) => void
}

const told = new Set<string>()

/** Tells of something once in the life of the process, as a warning of Node. The code is a constant of ours. */
export function warnOnce(code: string, message: string): void {
  if (told.has(code)) return
  told.add(code)
  warn(code, message)
}

/** Tells of something each time, as a warning of Node. The code is a constant of ours. */
export function warn(code: string, message: string): void {
  const { process } = globalThis as { readonly process?: Process }
  process?.emitWarning?.(message, { type: 'RepriseWarning', code })
}
