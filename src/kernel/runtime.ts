// The runtime underneath: modules of Node where there is a Node, and nothing where there is none.
//
// A static import of a `node:` module would keep the kernel out of browsers, so modules are asked for by name.

interface ModuleHost {
  readonly getBuiltinModule?: (name: string) => unknown
  readonly env?: Readonly<Record<string, string | undefined>>
}

/**
 * The named module of Node, or undefined where the runtime has none (a browser, or a bundler's stand-in for `process`).
 * Its type is said by the caller, so that the declarations of the kernel do not ask for those of Node:
 * `builtin<typeof import('node:crypto')>('node:crypto')`.
 */
export function builtin<Module>(name: `node:${string}`): Module | undefined {
  const host = (globalThis as { readonly process?: ModuleHost }).process
  if (typeof host?.getBuiltinModule !== 'function') return undefined
  return host.getBuiltinModule(name) as Module | undefined
}

/** A variable of the process's environment; undefined: it is not set, or the runtime has no process. */
export function environmentVariable(name: string): string | undefined {
  return (globalThis as { readonly process?: ModuleHost }).process?.env?.[name]
}
