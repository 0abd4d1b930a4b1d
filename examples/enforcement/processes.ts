// The parts as processes of their own: how each is started, says that it is ready, is ended, and what it writes down so
// that it is not lost when it is killed.

import { type ChildProcess, spawn } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** Who runs as a process. */
export type Role = 'service' | 'relay' | 'register' | 'client'

/** What the processes write down, a word a line. */
export type Word = 'request' | 'attempt' | 'repeat' | 'wire' | 'duplicate'

/** What happened, in a file to which all processes append. */
export class Journal {
  readonly #file: string

  constructor(file: string) {
    this.#file = file
  }

  /** Writes a word down, at once. */
  readonly note = (word: Word): void => appendFileSync(this.#file, `${word}\n`)

  /** How often a word was written. */
  count(word: Word): number {
    if (!existsSync(this.#file)) return 0
    return readFileSync(this.#file, 'utf8')
      .split('\n')
      .filter((line) => line === word).length
  }
}

/** How a process ended. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** A part as a process. */
export class Process {
  readonly role: Role
  readonly ended: Promise<Ended>
  readonly #child: ChildProcess
  #stdout = ''
  #stderr = ''

  /** @param faults What is to go wrong in it, as an environment: {@link killAt} makes one. */
  constructor(role: Role, settings: Readonly<Record<string, string>>, faults: object = {}) {
    this.role = role
    const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])
    // The channel tells the process when we are gone.
    this.#child = spawn(process.execPath, [script, role, ...args], {
      env: { ...process.env, REPRISE_FAULT: '', ...faults },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    this.#child.stdout?.setEncoding('utf8').on('data', (text) => {
      this.#stdout += text
    })
    this.#child.stderr?.setEncoding('utf8').on('data', (text) => {
      this.#stderr += text
    })
    this.ended = new Promise((resolve, reject) => {
      this.#child.on('error', reject)
      this.#child.on('close', (code, signal) => resolve({ code, signal }))
    })
  }

  /** All that it has printed. */
  get printed(): string {
    return this.#stdout
  }

  /** Whether it reached the point at which it was to be killed. */
  isKilledAt(point: string): boolean {
    return this.#stderr.includes(`reprise-fault ${point}:1=kill\n`)
  }

  /** Waits until it is at work, and gives its address, if it has one. */
  async ready(): Promise<string> {
    let end: Ended | undefined
    void this.ended.then((ended) => {
      end = ended
    })
    await until(() => end !== undefined || /^ready .*\n/m.test(this.#stdout), `the ${this.role} to be ready`)
    const address = /^ready (?<address>.*)\n/m.exec(this.#stdout)?.groups?.['address']
    if (address === undefined) throw new Error(`The ${this.role} ended before it was ready.\n${this.#stderr}`)
    return address
  }

  /** Ends it as a platform would. */
  async stop(): Promise<void> {
    this.#child.kill('SIGTERM')
    await this.ended
  }
}

const script = fileURLToPath(new URL('./story.js', import.meta.url))

const longestWaitMs = 240_000
const pollMs = 25

/** Waits for something that comes about. @param what In words, for the error where it does not. */
export async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const endMs = performance.now() + longestWaitMs
  while (!(await condition())) {
    if (performance.now() > endMs) throw new Error(`Waited too long for ${what}.`)
    await sleep(pollMs)
  }
}
