// Schedules in processes of their own: one is killed by SIGKILL at a fault point, and another repeats its call.

import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { inTime, RepriseError } from '../../kernel/index.js'
import { killAt } from '../fault-points.js'
import type { Heard, ProofIntent } from './calls.js'
import type { FromChild, ToChild } from './child.js'
import type { Visit } from './schedule.js'

/** What a process of a proof needs. */
export interface ProcessPlace {
  /** The module that exports `operation`, `world` and `input`. */
  readonly module: string
  readonly databaseUrl?: string | undefined
}

const child = fileURLToPath(new URL('./child.js', import.meta.url))
// Opening a world may migrate a store; on a busy machine that takes its time.
const startMs = 60_000
const endMs = 10_000

/** A process that makes calls. Whoever starts one ends it. */
class ProofProcess {
  readonly #child: ChildProcess
  readonly #ended: Promise<string>
  #answer: ((answer: FromChild) => void) | undefined

  constructor({ module, databaseUrl = '' }: ProcessPlace, fault: NodeJS.ProcessEnv) {
    this.#child = fork(child, [module, databaseUrl], {
      env: { ...process.env, REPRISE_FAULT: '', ...fault },
      execArgv: [],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    this.#child.on('message', (answer: FromChild) => this.#answer?.(answer))
    this.#ended = new Promise((resolve) => {
      this.#child.on('error', (error) => resolve(error.message))
      // Not `close`: Node does not tell of it where this side has disconnected.
      this.#child.on('exit', (code, signal) => resolve(signal ?? `exit ${code}`))
    })
  }

  /** Sends a request. The text says how the process ended where it did so before its answer. */
  ask(request: ToChild, limitMs = startMs): Promise<FromChild | string> {
    const answered = new Promise<FromChild>((resolve) => {
      this.#answer = resolve
    })
    // A process that is dying does not take it; `#ended` tells of that.
    this.#child.send(request, () => undefined)
    return inTime({ limitMs }, Promise.race([answered, this.#ended]))
  }

  async open(): Promise<void> {
    const answer = await this.ask({ open: true })
    const why = typeof answer === 'string' ? `its process ended by ${answer}` : answer.failed
    if (why === undefined) return
    throw new RepriseError('ARGUMENT_INVALID', `The option processes is not valid. Its module cannot be used: ${why}`)
  }

  /** Closes its world, and ends it. */
  async end(): Promise<void> {
    if (this.#child.connected) this.#child.disconnect()
    const gone = await inTime({ limitMs: endMs }, this.#ended).catch(() => undefined)
    if (gone === undefined) this.#child.kill('SIGKILL')
    await this.#ended
  }
}

/** Runs calls in a process of their own, which is ended afterwards. */
async function inProcess<Value>(
  place: ProcessPlace,
  fault: NodeJS.ProcessEnv,
  work: (one: ProofProcess) => Promise<Value>,
): Promise<Value> {
  const one = new ProofProcess(place, fault)
  try {
    await one.open()
    return await work(one)
  } finally {
    await one.end()
  }
}

/** Makes an undisturbed call in a process of its own, and hands out the points that it reached. */
export function visitedInProcess(place: ProcessPlace, id: string): Promise<readonly string[]> {
  return inProcess(place, {}, async (one) => {
    const answer = await one.ask({ call: id })
    return typeof answer === 'string' ? [] : (answer.reached ?? [])
  })
}

/** Kills a process at a visit during a call, and lets another repeat it. The result is whether it was killed there. */
export async function killedAt(place: ProcessPlace, { point, nth }: Visit, intent: ProofIntent): Promise<boolean> {
  let killed = false
  const call = async (one: ProofProcess): Promise<Heard> => {
    const answer = await one.ask({ call: intent.id })
    if (typeof answer !== 'string') return answer.heard ?? { verdict: 'unknown' }
    killed ||= answer === 'SIGKILL'
    return { verdict: 'unknown', says: `its process ended by ${answer}` }
  }
  intent.heard.push(await inProcess(place, killAt(point, nth), call))
  intent.heard.push(await inProcess(place, {}, call))
  return killed
}
