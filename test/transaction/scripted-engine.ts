// An engine that follows a script, for tests of the runner's decisions. The guarantees of real stores are tested on
// real stores.

import {
  type BeginSettings,
  type Engine,
  type Manifest,
  type Phase,
  type Receipt,
  type RecordDraft,
  type RecordOutcome,
  type Row,
  type Rows,
  type RulingWord,
  rulingOf,
  type Session,
  type Stored,
  type Trace,
  type TransactionControls,
} from '../../src/atomicity/index.js'
import type { StoredKey } from '../../src/identity/index.js'

/** What the body gets. */
export interface ScriptedHandle extends TransactionControls, Rows {
  /** A statement: fails when the handle is poisoned, or when the script says so. */
  statement(): Promise<void>
}

/** An error of the scripted engine: what it means is written on it. */
export class EngineError extends Error {
  readonly word: RulingWord

  constructor(word: RulingWord) {
    super(`engine says ${word}`)
    this.word = word
  }
}

/** What to do at a step: return nothing, throw, or wait. */
type Step = (attempt: number) => unknown

/** The script of an engine; what it does not mention goes well. */
export interface Script {
  readonly acquire?: Step
  readonly begin?: Step
  readonly claim?: (attempt: number, draft: RecordDraft) => 'claimed' | Stored | Promise<'claimed' | Stored>
  readonly statement?: Step
  readonly rows?: Partial<Rows>
  readonly commit?: Step
  readonly rollback?: Step
  readonly resolve?: () => Promise<'committed' | 'aborted' | 'unknown'>
  readonly manifest?: Partial<Manifest>
  readonly trace?: Trace
  readonly durability?: Receipt['durability']
}

/** The engine, and what was asked of it. */
export interface Scripted extends Engine<ScriptedHandle> {
  readonly log: string[]
  readonly begun: BeginSettings[]
}

const manifest: Manifest = {
  engine: 'scripted',
  isolation: ['read-committed', 'serializable'],
  writers: 'many',
  readOnly: true,
  savepoints: false,
  commit: 'ambiguous',
  resolvesUnkeyed: true,
  rowLock: 'row',
  lockReport: false,
  refuse: 'never',
  reach: 'process',
  durability: 'process',
  because: {},
}

/** An engine with a script. */
export function scripted(script: Script = {}): Scripted {
  const log: string[] = []
  const begun: BeginSettings[] = []
  let sessions = 0
  return {
    name: 'scripted',
    manifest: { ...manifest, ...script.manifest },
    log,
    begun,
    async acquire() {
      sessions++
      log.push('acquire')
      await script.acquire?.(sessions)
      return new ScriptedSession(script, sessions, log, begun)
    },
    classify: (error, phase) => (error instanceof EngineError ? rulingOf(error.word, error.word) : unlisted(phase)),
    ...(script.resolve === undefined ? {} : { resolve: script.resolve }),
  }
}

function unlisted(phase: Phase) {
  return rulingOf(phase === 'committing' ? 'resolve' : 'surface', 'unlisted')
}

class ScriptedSession implements Session<ScriptedHandle> {
  readonly #script: Script
  readonly #number: number
  readonly #log: string[]
  readonly #begun: BeginSettings[]
  poisoned: { readonly error: unknown } | undefined
  trace: Trace | undefined

  constructor(script: Script, number: number, log: string[], begun: BeginSettings[]) {
    this.#script = script
    this.#number = number
    this.#log = log
    this.#begun = begun
    this.trace = script.trace
  }

  async begin(settings: BeginSettings, controls: TransactionControls): Promise<ScriptedHandle> {
    this.#log.push('begin')
    this.#begun.push(settings)
    await this.#script.begin?.(this.#number)
    return {
      attempt: controls.attempt,
      signal: controls.signal,
      deadline: controls.deadline,
      afterCommit: (work) => controls.afterCommit(work),
      ...noRows,
      ...this.#script.rows,
      statement: async () => {
        if (this.poisoned !== undefined) throw this.poisoned.error
        this.#log.push('statement')
        try {
          await this.#script.statement?.(this.#number)
        } catch (error) {
          this.poison(error)
          throw error
        }
      },
    }
  }

  async claim(_id: StoredKey, draft: RecordDraft): Promise<'claimed' | Stored> {
    this.#log.push('claim')
    return (await this.#script.claim?.(this.#number, draft)) ?? 'claimed'
  }

  async reclaim(): Promise<boolean> {
    this.#log.push('reclaim')
    return true
  }

  async record(_id: string, { value }: RecordOutcome): Promise<void> {
    this.#log.push(`record ${value}`)
  }

  async commit(): Promise<Receipt> {
    this.#log.push('commit')
    await this.#script.commit?.(this.#number)
    return { durability: this.#script.durability ?? 'promised' }
  }

  async rollback(): Promise<void> {
    this.#log.push('rollback')
    await this.#script.rollback?.(this.#number)
  }

  release(fate: 'keep' | 'discard'): void {
    this.#log.push(fate)
  }

  poison(error: unknown): void {
    this.poisoned ??= { error }
  }
}

const none = async (): Promise<never> => {
  throw new Error('the scripted engine has no rows')
}

const noRows: Rows = {
  insertOnce: none,
  upsert: none,
  addToSet: none,
  transition: none,
  lockRow: none as () => Promise<Row | undefined>,
  readRow: none,
  updateRows: none,
}
