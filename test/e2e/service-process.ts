// The sample service as a real process, started by the command that `npm start` runs; other commands in the same way.

import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** How the command ended, and all that it wrote. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** The command at work. */
export interface Command {
  readonly pid: number
  readonly ended: Promise<Ended>
  /** What it has written so far. */
  stdout(): string
  /** Sends a signal to the command itself. */
  signal(name: NodeJS.Signals): void
}

/**
 * Starts the command with settings of its own; those of the tests' own environment are not passed on.
 *
 * @param args The command and what it is given. Default: that of `npm start`.
 */
export function startCommand(settings: Readonly<Record<string, string>>, args: readonly string[] = ['start']): Command {
  const { PORT: _p, HOST: _h, DATABASE_URL: _d, REPRISE_DRILL: _r, ...rest } = process.env
  const child = spawn(process.execPath, [join(root, 'tools', 'run.mjs'), ...args], {
    cwd: root,
    env: { ...rest, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    stdout += chunk
  })
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    stderr += chunk
  })
  const ended = new Promise<Ended>((resolve) =>
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr })),
  )
  return { pid: child.pid ?? 0, ended, stdout: () => stdout, signal: (name) => void child.kill(name) }
}

/** A service that serves. */
export interface Service extends Command {
  readonly url: string
}

/** Starts the service and waits for its ready line; on any free port, unless told otherwise. */
export async function startService(settings: Readonly<Record<string, string>>): Promise<Service> {
  const command = startCommand({ PORT: '0', ...settings })
  const ready = async (): Promise<string> => {
    for (;;) {
      const url = /^ready (\S+)\n/.exec(command.stdout())?.[1]
      if (url !== undefined) return url
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  const early = command.ended.then(({ code, stderr }) => {
    throw new Error(`The service ended with code ${code} before it was ready.\n${stderr}`)
  })
  early.catch(() => undefined)
  return { ...command, url: await Promise.race([ready(), early]) }
}

/** Ends a service as a platform would, and waits. */
export function stop(service: Command): Promise<Ended> {
  service.signal('SIGTERM')
  return service.ended
}

/** A file of SQLite in a folder of its own, which is removed after the tests of the file that calls this. */
export function freshFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-payments-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return `sqlite:${join(folder, 'made', 'here.db')}`
}

/** A payment, to be sent. */
export interface Sent {
  readonly key?: string | undefined
  readonly drill?: string
  readonly principal?: string | undefined
  readonly body?: unknown
  /** Default: the route with Reprise. */
  readonly path?: string
}

/** What is paid unless a test says otherwise. */
export const order = { account: 'shop', amountMinor: 1200, currency: 'EUR' }

/** Sends a payment. An absent key is a fresh one, an undefined one is none. */
export function pay(url: string, sent: Sent = {}): Promise<Response> {
  const { key, principal } = { key: randomUUID(), principal: 'me', ...sent }
  const { body = order, drill, path = '/payments' } = sent
  return fetch(url + path, {
    method: 'POST',
    redirect: 'manual',
    headers: {
      'content-type': 'application/json',
      ...(principal === undefined ? {} : { authorization: `Bearer ${principal}` }),
      ...(key === undefined ? {} : { 'idempotency-key': `"${key}"` }),
      ...(drill === undefined ? {} : { drill }),
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

/** How many payments there are, of everybody. */
export async function effects(url: string): Promise<number> {
  const { payments } = (await (await fetch(`${url}/drill/effects`)).json()) as { payments: number }
  return payments
}

/** Whether an answer came from memory. */
export const isReplay = (response: Response): boolean => response.headers.get('idempotent-replayed') === 'true'
