// A world for commands that a test can look into: no terminal, no disk.

import type { Io } from '../../src/cli/index.js'

/** What a command did. */
export interface Seen extends Io {
  /** The standard output. */
  out: string
  /** The standard error. */
  err: string
  /** How it ended. */
  code: number | undefined
  /** Files, both those there before and those written. */
  readonly files: Map<string, string>
  /** Modules that can be loaded. */
  readonly modules: Map<string, unknown>
}

/** A new world; with a width it has a terminal. */
export function ioInMemory(options: { columns?: number; color?: boolean } = {}): Seen {
  const missing = (): never => {
    throw Object.assign(new Error('no such file'), { code: 'ENOENT' })
  }
  const seen: Seen = {
    out: '',
    err: '',
    code: undefined,
    files: new Map(),
    modules: new Map(),
    columns: options.columns,
    color: options.color ?? false,
    write: (text) => {
      seen.out += text
    },
    complain: (text) => {
      seen.err += text
    },
    readText: async (path) => seen.files.get(path) ?? missing(),
    writeText: async (path, text) => {
      seen.files.set(path, text)
    },
    importModule: async (path) => seen.modules.get(path) ?? missing(),
    exit: (code) => {
      seen.code = code
    },
  }
  return seen
}
