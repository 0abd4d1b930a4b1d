// What a command may touch of the world: the terminal and files. Tests hand in their own.

import { access, constants, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

/** The world as a command sees it. */
export interface Io {
  /** Writes to the standard output. */
  write(text: string): void
  /** Writes to the standard error. */
  complain(text: string): void
  /** How wide the terminal is, in characters; undefined if the output is not a terminal. */
  readonly columns: number | undefined
  /** Whether colours are welcome. */
  readonly color: boolean
  /** The text of a file. */
  readText(path: string): Promise<string>
  /** Writes a file. */
  writeText(path: string, text: string): Promise<void>
  /** Rejects if a file could not be written, and changes nothing. Without it, that is found out when it is written. */
  checkWritable?(path: string): Promise<void>
  /** Loads an ESM module from a file. */
  importModule(path: string): Promise<unknown>
  /** A variable of the environment. Default: none is set. */
  environment?(name: string): string | undefined
  /** Aborted when the user asks the command to end (Ctrl-C, SIGTERM), from the first call on. Default: never. */
  untilEnded?(): AbortSignal
  /** The command is over: from now on such a wish ends the process as usual, also where a module of the user's keeps it alive. */
  over?(): void
  /** Says how the command ended: 0 well, 1 something failed, 2 used wrongly; more where its help says so. */
  exit(code: number): void
}

/** Text of a user's file or module made fit for a terminal: it must neither steer it nor look like further lines. */
export function printable(text: unknown): string {
  return String(text).replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]+/gu, ' ')
}

/** The world of this process. */
export function processIo(): Io {
  const stdout = process.stdout
  const stderr = process.stderr
  const env = process.env
  // A reader such as head may leave before the end: no reason to complain.
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })
  const wishes = new Set<() => void>()
  return {
    write: (text) => void stdout.write(text),
    complain: (text) => void stderr.write(text),
    columns: stdout.isTTY ? stdout.columns || 80 : undefined,
    // See no-color.org: any value that is not empty says no.
    color: stdout.isTTY === true && !env['NO_COLOR'] && env['TERM'] !== 'dumb',
    readText: (path) => readFile(path, 'utf8'),
    writeText: (path, text) => writeFile(path, text),
    checkWritable,
    importModule: (path) => import(pathToFileURL(resolve(path)).href),
    environment: (name) => env[name],
    over: () => {
      for (const name of ['SIGINT', 'SIGTERM'] as const) for (const end of wishes) process.removeListener(name, end)
      wishes.clear()
    },
    untilEnded() {
      const controller = new AbortController()
      const end = (): void => controller.abort(new Error('ended by a signal'))
      // Once each: a second Ctrl-C ends the process at once, as it would without us.
      wishes.add(end)
      process.once('SIGINT', end)
      process.once('SIGTERM', end)
      return controller.signal
    },
    // Not process.exit(): what was written to a pipe would be cut off.
    exit: (code) => {
      process.exitCode = code
    },
  }
}

// Asks and does not open: opening would leave an empty file behind when the run is broken off, and end a pipe's reader.
async function checkWritable(path: string): Promise<void> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  if (found?.isDirectory()) throw Object.assign(new Error('It is a directory.'), { code: 'EISDIR' })
  await access(found === undefined ? dirname(resolve(path)) : path, constants.W_OK)
}
