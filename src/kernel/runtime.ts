// The runtime underneath: modules of Node where there is a Node, and nothing where there is none.
//
// A static import of a `node:` module would keep the kernel out of browsers, so modules are asked for by name.

/** The modules of Node that are asked for, by name. */
export interface BuiltinModules {
  readonly 'node:async_hooks': typeof import('node:async_hooks')
  readonly 'node:crypto': typeof import('node:crypto')
  readonly 'node:diagnostics_channel': typeof import('node:diagnostics_channel')
  readonly 'node:fs/promises': typeof import('node:fs/promises')
  readonly 'node:util': typeof import('node:util')
}

interface ModuleHost {
  readonly getBuiltinModule?: (name: string) => unknown
}

/**
 * The named module of Node, or undefined where the runtime has none (a browser, or a bundler's stand-in for `process`).
 */
export function builtin<Name extends keyof BuiltinModules>(name: Name): BuiltinModules[Name] | undefined {
  const host = (globalThis as { readonly process?: ModuleHost }).process
  if (typeof host?.getBuiltinModule !== 'function') return undefined
  return host.getBuiltinModule(name) as BuiltinModules[Name] | undefined
}
