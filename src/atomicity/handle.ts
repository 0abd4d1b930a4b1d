// What every handle offers to its body, whatever the store: the controls that the runner gave to the attempt, writes
// that can be repeated, and messages.

import type { Deadline } from '../kernel/index.js'
import type { TransactionControls } from './engine.js'
import type { HandleLife } from './handle-life.js'
import type { MessageDraft } from './outbox/message.js'
import type { Emits, EmitsSoon } from './outbox/outbox.js'
import type { Rows } from './rows/rows.js'

/**
 * The handle of a transaction, for stores to extend with their queries and savepoints. The controls are asked each
 * time, since a signal is only made when a body first asks for it. Each write is a call of the body, which may not wait
 * for it. A class, since an object with a function of its own for each member costs as much as a statement.
 */
export class TransactionHandle implements TransactionControls, Rows, Emits {
  readonly #controls: TransactionControls & { readonly engine?: object }
  readonly #life: Pick<HandleLife, 'call'> & Partial<Pick<HandleLife, 'emissions'>>
  readonly #makeRows: () => Rows
  readonly #emits: EmitsSoon
  #madeRows: Rows | undefined

  /**
   * @param controls What the runner gave to `begin`; `engine` is whose transaction it is.
   * @param life Knows of the calls that the body does not wait for.
   * @param makeRows Makes the rows of the store, when a body first asks for one: most ask for none.
   * @param emits Keeps what the body emits.
   */
  constructor(
    controls: TransactionControls & { readonly engine?: object },
    life: Pick<HandleLife, 'call'> & Partial<Pick<HandleLife, 'emissions'>>,
    makeRows: () => Rows,
    emits: EmitsSoon,
  ) {
    this.#controls = controls
    this.#life = life
    this.#makeRows = makeRows
    this.#emits = emits
  }

  /** Whether a value is the handle of a transaction of this engine: of a domain's own, and of no other's. */
  static isOf(engine: object, value: unknown): boolean {
    return typeof value === 'object' && value !== null && #controls in value && value.#controls.engine === engine
  }

  /** The keys of what the body of a transaction has emitted so far, each once, in order; none of other handles. */
  static keysEmittedBy(value: object): readonly string[] {
    const emissions = #life in value ? value.#life.emissions : undefined
    return emissions === undefined ? [] : [...new Set(emissions.map(({ key }) => key))].sort()
  }

  get attempt(): number {
    return this.#controls.attempt
  }

  get signal(): AbortSignal {
    return this.#controls.signal
  }

  get deadline(): Deadline {
    return this.#controls.deadline
  }

  afterCommit(work: () => unknown): void {
    this.#controls.afterCommit(work)
  }

  emit(message: MessageDraft): Promise<string>
  emit(messages: readonly MessageDraft[]): Promise<readonly string[]>
  emit(given: MessageDraft | readonly MessageDraft[]): Promise<string | readonly string[]> {
    return this.#life.call(() => this.#emits.emit(given))
  }

  insertOnce(...values: Parameters<Rows['insertOnce']>): ReturnType<Rows['insertOnce']> {
    return this.#life.call(() => this.#rows.insertOnce(...values))
  }

  upsert(...values: Parameters<Rows['upsert']>): ReturnType<Rows['upsert']> {
    return this.#life.call(() => this.#rows.upsert(...values))
  }

  addToSet(...values: Parameters<Rows['addToSet']>): ReturnType<Rows['addToSet']> {
    return this.#life.call(() => this.#rows.addToSet(...values))
  }

  transition(...values: Parameters<Rows['transition']>): ReturnType<Rows['transition']> {
    return this.#life.call(() => this.#rows.transition(...values))
  }

  lockRow(...values: Parameters<Rows['lockRow']>): ReturnType<Rows['lockRow']> {
    return this.#life.call(() => this.#rows.lockRow(...values))
  }

  readRow(...values: Parameters<Rows['readRow']>): ReturnType<Rows['readRow']> {
    return this.#life.call(() => this.#rows.readRow(...values))
  }

  updateRows(...values: Parameters<Rows['updateRows']>): ReturnType<Rows['updateRows']> {
    return this.#life.call(() => this.#rows.updateRows(...values))
  }

  get #rows(): Rows {
    this.#madeRows ??= this.#makeRows()
    return this.#madeRows
  }
}
