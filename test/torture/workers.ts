// The worker processes: each is given a fate that the seed drew, dies or stops where it says, and is replaced.

import { type ChildProcess, fork } from 'node:child_process'
import { setTimeout as wait } from 'node:timers/promises'
import type { Random } from '../../src/kernel/index.js'
import { faultEnvironment } from '../../src/testing/index.js'
import { draw, drawMs } from './engines/engine.js'

/** What a worker says. */
type Said =
  | { readonly ready: true }
  | { readonly reached: string }
  | { readonly fault: string }
  | { readonly id: number; readonly told: unknown }

/** A worker that is alive. */
interface Worker {
  readonly child: ChildProcess
  /** Those who wait for its answers. Undefined: it died, and nobody knows. */
  readonly waiting: Map<number, (told: unknown) => void>
  readonly gone: Promise<void>
  ready: boolean
  stopped: boolean
  /** Whether we ended it. */
  ended: boolean
  said: string
}

/** What all workers are. */
interface WorkersOptions {
  readonly script: string
  readonly random: Random
  /** The fault points at which they may die. */
  readonly points: readonly string[]
  /** A stop lasts longer than this, in ms. */
  readonly leaseMs: number
  /** How often a worker passes the point at which it dies, as a multiple of a few times. */
  readonly life: number
  /** Told of every fault that happened. */
  readonly onFault: (kind: string) => void
}

const faultLine = /^reprise-fault (.+):\d+=(kill|stop)$/gm

/** The workers of a run. */
export class Workers {
  readonly reached = new Set<string>()
  /** Whether workers are given a fate. */
  fateful = true
  readonly #options: WorkersOptions
  readonly #alive = new Set<Worker>()
  readonly #struck = new Set<string>()
  #told: object = {}
  #wanted = 0
  #calls = 0
  #failure: Error | undefined

  constructor(options: WorkersOptions) {
    this.#options = options
  }

  /** Starts this many, and keeps as many alive. */
  start(count: number, told: object): void {
    this.#told = told
    this.#wanted = count
    this.#refill()
    for (const worker of this.#alive) if (worker.ready) this.#giveFate(worker)
  }

  /** How many of them answer. */
  get ready(): number {
    return [...this.#alive].filter(({ ready, stopped }) => ready && !stopped).length
  }

  /** Sends a call to one of them; undefined: it died, and nobody knows what became of it. */
  async call(order: object): Promise<unknown> {
    for (;;) {
      this.#demandSound()
      const ready = [...this.#alive].filter((worker) => worker.ready)
      if (ready.length === 0) {
        await wait(20)
        continue
      }
      const worker = draw(this.#options.random, ready)
      this.#calls += 1
      const id = this.#calls
      return new Promise((resolve) => {
        worker.waiting.set(id, resolve)
        worker.child.send({ id, order }, () => undefined)
      })
    }
  }

  /** Kills one of them. */
  async kill(): Promise<boolean> {
    const [worker] = this.#chosen()
    if (worker === undefined) return false
    await this.#end(worker)
    return true
  }

  /** Kills all of them at once. */
  async killAll(): Promise<boolean> {
    await Promise.all([...this.#alive].map((worker) => this.#end(worker)))
    return true
  }

  /** Stops one of them for longer than a lease. */
  async stop(): Promise<boolean> {
    const [worker] = this.#chosen()
    if (worker === undefined) return false
    worker.child.kill('SIGSTOP')
    this.#goesOn(worker)
    return true
  }

  /** Has one of them stop for longer than a lease at one of these points, when it comes there next. */
  stopAt(points: readonly string[]): void {
    const [worker] = this.#chosen()
    if (worker !== undefined) this.#fate(worker, draw(this.#options.random, points), 'stop', 1)
  }

  /** Ends all of them for good. */
  async close(): Promise<void> {
    this.#wanted = 0
    await this.killAll()
  }

  /** Refuses to go on where a worker ended by itself: that is a fault that nobody drew. */
  #demandSound(): void {
    if (this.#failure !== undefined) throw this.#failure
  }

  #chosen(): Worker[] {
    const ready = [...this.#alive].filter(({ ready, stopped }) => ready && !stopped)
    return ready.length === 0 ? [] : [draw(this.#options.random, ready)]
  }

  async #end(worker: Worker): Promise<void> {
    worker.ended = true
    worker.child.kill('SIGKILL')
    await worker.gone
  }

  #goesOn(worker: Worker): void {
    const { random, leaseMs } = this.#options
    worker.stopped = true
    setTimeout(
      () => {
        worker.stopped = false
        worker.child.kill('SIGCONT')
      },
      drawMs(random, leaseMs * 1.5, leaseMs * 3.5),
    )
  }

  #refill(): void {
    while (this.#alive.size < this.#wanted) this.#spawn()
  }

  /** Says where it is to die or to stop: points at which nobody has yet come first. */
  #giveFate(worker: Worker): void {
    const { random, points, life } = this.#options
    if (!this.fateful || random.next() < 0.1) return
    const left = points.filter((point) => !this.#struck.has(point))
    const [from, most] = left.length > 0 && random.next() < 0.7 ? [left, 4] : [points, 30]
    const fault = random.next() < 0.75 ? 'kill' : 'stop'
    this.#fate(worker, draw(random, from), fault, 1 + Math.floor(random.next() * most * life))
  }

  #fate({ child }: Worker, point: string, fault: 'kill' | 'stop', nth: number): void {
    const { REPRISE_FAULT } = faultEnvironment(point, fault, nth)
    child.send({ fate: REPRISE_FAULT }, () => undefined)
  }

  #spawn(): void {
    const child = fork(this.#options.script, [JSON.stringify(this.#told)], {
      execArgv: [],
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    })
    const waiting: Worker['waiting'] = new Map()
    const gone = new Promise<void>((resolve) => child.once('close', () => resolve()))
    const worker: Worker = { child, waiting, gone, ready: false, stopped: false, ended: false, said: '' }
    this.#alive.add(worker)
    child.on('message', (said: Said) => this.#heard(worker, said))
    child.on('error', () => undefined)
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => this.#complained(worker, chunk))
    child.once('close', (code, signal) => this.#died(worker, code, signal))
  }

  #heard(worker: Worker, said: Said): void {
    if ('ready' in said) {
      worker.ready = true
      this.#giveFate(worker)
    } else if ('reached' in said) this.reached.add(said.reached)
    else if ('fault' in said) this.#options.onFault(said.fault)
    else {
      worker.waiting.get(said.id)?.(said.told)
      worker.waiting.delete(said.id)
    }
  }

  #complained(worker: Worker, chunk: string): void {
    worker.said += chunk
    for (const [line, point = '', fault] of worker.said.matchAll(faultLine)) {
      worker.said = worker.said.replace(line, '')
      this.reached.add(point)
      this.#struck.add(point)
      this.#options.onFault(`${fault}-at-point`)
      if (fault === 'stop') this.#goesOn(worker)
      else worker.ended = true
    }
  }

  #died(worker: Worker, code: number | null, signal: string | null): void {
    this.#alive.delete(worker)
    if (signal !== 'SIGKILL' || !worker.ended) {
      this.#failure ??= new Error(`A worker ended by itself (${code ?? signal}).\n${worker.said}`)
    }
    for (const tell of worker.waiting.values()) tell(undefined)
    this.#refill()
  }
}
