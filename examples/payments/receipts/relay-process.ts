// Watches over the relay: starts its process, takes what it publishes, and starts another one when it is gone.

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Answering, Publishing } from './wire.js'

const script = fileURLToPath(new URL('./relay.js', import.meta.url))
const leastRestMs = 250
const longestRestMs = 30_000

/** What the process needs of whoever watches over it. */
export interface RelayHost {
  /** Takes what it publishes. Never rejects. */
  take(events: readonly string[]): Promise<Omit<Answering, 'published'>>
  /** Is told that it was killed, and that another one is at work. */
  tell(what: 'killed' | 'back'): void
}

/** The relay as a process. */
export class RelayProcess {
  readonly #around: RelayHost
  #child: ChildProcess | undefined
  #next: NodeJS.Timeout | undefined
  #isEnding = false
  /** Ends without a publish in between. */
  #ends = 0

  constructor(around: RelayHost) {
    this.#around = around
    this.#start()
  }

  /** Lets it finish what it publishes, and starts no other one. */
  async stop(): Promise<void> {
    this.#isEnding = true
    clearTimeout(this.#next)
    const child = this.#child
    if (child === undefined) return
    const ended = once(child, 'close')
    child.kill('SIGTERM')
    await ended
  }

  #start(): void {
    const child = fork(script, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    this.#child = child
    child.on('message', (call: Publishing) => void this.#published(child, call))
    child.on('error', (error) => console.error(`The relay: ${error.message}`))
    child.on('close', (_code, signal) => this.#ended(signal))
    child.on('spawn', () => {
      if (this.#ends > 0) this.#around.tell('back')
    })
  }

  async #published(child: ChildProcess, { publish, events }: Publishing): Promise<void> {
    this.#ends = 0
    const answer: Answering = { published: publish, ...(await this.#around.take(events)) }
    if (child.connected) child.send(answer, () => undefined)
  }

  #ended(signal: NodeJS.Signals | null): void {
    this.#child = undefined
    if (this.#isEnding) return
    if (signal === 'SIGKILL') this.#around.tell('killed')
    const restMs = Math.min(longestRestMs, leastRestMs * 2 ** this.#ends)
    this.#ends += 1
    this.#next = setTimeout(() => this.#start(), restMs)
  }
}
