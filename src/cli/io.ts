// What a command may use of the world outside: the terminal, files and the environment. Tests pass their own.

import { access, constants, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

/** The terminal, files and environment that a command uses. */
export interface Io {
  write(text: string): void
  /** Writes to the standard error output. */
  complain(text: string): void
  /** How wide the terminal is, in characters; undefined if the output is not a terminal. */
  readonly columns: number | undefined
  /** Whether the terminal shows colours. */
  readonly color: boolean
  readText(path: string): Promise<string>
  writeText(path: string, text: string): Promise<void>
  /** Rejects if the file could not be written, and changes nothing. Default: that is found out when it is written. */
  checkWritable?(path: string): Promise<void>
  importModule(path: string): Promise<unknown>
  /** A variable of the environment. Default: none is set. */
  environment?(name: string): string | undefined
  /** A signal that is aborted when the user asks the command to end (Ctrl-C, SIGTERM). Default: never. */
  untilEnded?(): AbortSignal
  /**
   * Called when the command is over. From now on Ctrl-C ends the process as usual, even if a module of the user's keeps
   * it running.
   */
  over?(): void
  /** Sets the exit code: 0 for success, 1 for a failure, 2 for wrong use, others where the command's help says so. */
  exit(code: number): void
}

/**
 * Text from a user's file or module without control characters: it must neither steer the terminal nor look like
 * several lines.
 */
export function printable(text: unknown): string {
  return String(text).replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]+/gu, ' ')
}

/** The terminal, files and environment of this process. */
export function processIo(): Io {
  const stdout = process.stdout
  const stderr = process.stderr
  const env = process.env
  // A reader such as head may close the pipe early. That is no error.
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })
  const wishes = new Set<() => void>()
  return {
    write: (text) => void stdout.write(text),
    complain: (text) => void stderr.write(text),
    columns: stdout.isTTY ? stdout.columns || 80 : undefined,
    // See no-color.org: any value that is not empty turns colours off.
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

// Only asks for permission. Opening the file would leave an empty one behind when the run is interrupted, and would end
// the reader of a pipe.
async function checkWritable(path: string): Promise<void> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  if (found?.isDirectory()) throw Object.assign(new Error('It is a directory.'), { code: 'EISDIR' })
  await access(found === undefined ? dirname(resolve(path)) : path, constants.W_OK)
}
