// What a body works with: the ORM's own transaction, and beside it plain queries and repeatable writes on the same
// connection.

import {
  type Emits,
  type EmitsSoon,
  type HandleLife,
  type Manifest,
  type Rows,
  type TransactionControls,
  TransactionHandle,
} from '../../atomicity/index.js'
import { RepriseError } from '../../kernel/index.js'
import { type SqlAnswer, type SqlExecutor, sqlRows } from '../sql/index.js'

/** What a body of a callback domain gets. */
export interface CallbackTransaction<Tx> extends TransactionControls, Rows, Emits {
  /**
   * What the ORM hands out for its transaction. Asking for it is refused once the transaction has ended or failed; what
   * was asked for before stays as usable as the ORM leaves it.
   */
  readonly db: Tx
  /** Runs one statement on the transaction's connection; placeholders are `$1` or `?`, as the dialect has them. */
  query<Row = Readonly<Record<string, unknown>>>(
    text: string,
    values?: readonly unknown[],
  ): Promise<{ readonly rows: Row[]; readonly rowCount: number }>
  /** Refused with CAPABILITY_UNSUPPORTED: nest with what the ORM has for it, through `db`. */
  savepoint<Result>(work: () => Promise<Result>): Promise<Result>
}

/** What the handle needs of its session. */
export interface CallbackPort<Tx> extends SqlExecutor, EmitsSoon {
  /** Knows of the calls that the body does not wait for. */
  readonly life: Pick<HandleLife, 'call'>
  readonly manifest: Manifest
  /** What the ORM hands out; refuses where the transaction is over or has failed. */
  tx(): Tx
  /** Runs a statement of the body. */
  ask(text: string, values: readonly unknown[]): Promise<SqlAnswer>
}

/** The handle of a transaction. */
export function callbackHandle<Tx>(port: CallbackPort<Tx>, controls: TransactionControls): CallbackTransaction<Tx> {
  return new Handle(port, controls)
}

class Handle<Tx> extends TransactionHandle implements CallbackTransaction<Tx> {
  readonly #port: CallbackPort<Tx>

  constructor(port: CallbackPort<Tx>, controls: TransactionControls) {
    super(controls, port.life, () => sqlRows(port), port)
    this.#port = port
  }

  get db(): Tx {
    return this.#port.tx()
  }

  query<Row>(text: string, values: readonly unknown[] = []): Promise<{ rows: Row[]; rowCount: number }> {
    return this.#port.life.call(() => this.#query(text, values))
  }

  async #query<Row>(text: string, values: readonly unknown[]): Promise<{ rows: Row[]; rowCount: number }> {
    const { rows, rowCount } = await this.#port.ask(text, values)
    return { rows: rows as unknown as Row[], rowCount }
  }

  async savepoint(): Promise<never> {
    const { because, engine } = this.#port.manifest
    throw new RepriseError('CAPABILITY_UNSUPPORTED', `No savepoints here: ${because.savepoints}`, {
      details: { option: 'savepoints', engine },
    })
  }
}
