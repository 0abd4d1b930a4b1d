// A server as a child process: under a user that may run it, on a free port, with a log that is shown when it fails.

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { findProgram } from '../../tools/servers.mjs'

const execute = promisify(execFile)

/** Whether we are root: then servers that refuse root run as another user. */
export const isRoot: boolean = process.getuid?.() === 0

/**
 * The command words that run a program as another user if we are root, and that end it when we end, where the system
 * can do that.
 */
function wrapper(user: string, dieWithUs: boolean): readonly string[] {
  const setpriv = findProgram('setpriv')
  const who = isRoot ? [`--reuid=${user}`, `--regid=${user}`, '--init-groups'] : []
  const fate = dieWithUs ? ['--pdeathsig=QUIT'] : []
  if (setpriv !== undefined) return who.length + fate.length > 0 ? [setpriv, ...who, ...fate, '--'] : []
  if (!isRoot) return []
  throw new Error(`Neither as root nor without setpriv can the server be run as ${user}: install util-linux.`)
}

/** Our environment without what would point a client elsewhere. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^PG[A-Z]/.test(name))
  return { ...Object.fromEntries(kept), LC_ALL: 'C', TZ: 'UTC' }
}

/** Runs a program of a server to its end, as the given user; an error shows what it wrote. */
export async function runAs(user: string, program: string, args: readonly string[]): Promise<string> {
  const [first = program, ...rest] = [...wrapper(user, false), program, ...args]
  const { stdout } = await execute(first, rest, { env: cleanEnvironment(), cwd: '/', timeout: 240_000 }).catch(
    (error) => {
      throw new Error(`${program} failed.\n${error.stdout ?? ''}${error.stderr ?? error.message}`)
    },
  )
  return stdout
}

/** A port of the loopback interface that nobody listens on, at this moment. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}

/** A running server. */
export interface ServerProcess {
  readonly pid: number
  /** Whether it has ended. */
  readonly ended: boolean
  /** Settles when it has ended. */
  readonly end: Promise<void>
  /** Sends a signal to this process and to no other; does nothing when it has ended. */
  signal(name: NodeJS.Signals): void
  /** Waits until `isReady` says so; an end before that, or 3 minutes, is an error that shows the log. */
  ready(isReady: () => boolean | Promise<boolean>): Promise<void>
}

/** Starts a server as the given user, its output going to the end of a log file. It ends when this process ends. */
export function startServer(user: string, program: string, args: readonly string[], logPath: string): ServerProcess {
  const log = openSync(logPath, 'a')
  const [first = program, ...rest] = [...wrapper(user, true), program, ...args]
  const child: ChildProcess = spawn(first, rest, { env: cleanEnvironment(), cwd: '/', stdio: ['ignore', log, log] })
  closeSync(log)
  let failure: Error | undefined
  const isOver = (): boolean => failure !== undefined || child.exitCode !== null || child.signalCode !== null
  const end = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      failure = error
      resolve()
    })
    child.once('exit', () => resolve())
  })
  child.unref()
  return {
    pid: child.pid ?? 0,
    get ended() {
      return isOver()
    },
    end,
    signal(name) {
      if (isOver()) return
      child.ref() // whoever sends a signal waits for the end
      child.kill(name)
    },
    async ready(isReady) {
      const untilMs = Date.now() + 180_000
      while (!(await isReady())) {
        if (!isOver() && Date.now() < untilMs) {
          await wait(20)
          continue
        }
        const how =
          failure?.message ?? (isOver() ? `ended with ${child.exitCode ?? child.signalCode}` : 'did not start')
        if (!isOver()) child.kill('SIGKILL')
        throw new Error(`${program} ${how}.\n${readFileSync(logPath, 'utf8')}`)
      }
    },
  }
}

/** Waits until a condition holds; an error after `limitMs`. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  limitMs = 120_000,
): Promise<void> {
  const endMs = Date.now() + limitMs
  while (!(await condition())) {
    if (Date.now() > endMs) throw new Error(`Waited ${limitMs} ms in vain: ${what}.`)
    await wait(10)
  }
}
