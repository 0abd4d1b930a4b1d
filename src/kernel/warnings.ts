// What a program should know and no error says. Where the runtime has no way to tell, nothing is told.

interface Process {
  readonly emitWarning?: (message: string, options: { readonly type: string; readonly code: string }) => void
}

const told = new Set<string>()

/** Tells of something once in the life of the process, as a warning of Node. The code is a constant of ours. */
export function warnOnce(code: string, message: string): void {
  if (told.has(code)) return
  told.add(code)
  const { process } = globalThis as { readonly process?: Process }
  process?.emitWarning?.(message, { type: 'RepriseWarning', code })
}
