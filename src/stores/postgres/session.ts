// One connection for one transaction: begin, claim, record, commit, and the watch over everything in between.

import {
  type BeginSettings,
  type Blocker,
  type HandleLife,
  handleLife,
  type Isolation,
  type Receipt,
  type Session,
  type Stored,
  type Trace,
  type TransactionControls,
} from '../../atomicity/index.js'
import type { StoredKey } from '../../identity/index.js'
import { type Clock, RepriseError } from '../../kernel/index.js'
import { migrationMissing, type SqlAnswer, type SqlExecutor } from '../sql/index.js'
import type { Traces } from './asking/trace.js'
import { endsConnection, signsOf } from './classification.js'
import {
  lastOf,
  type PostgresTransaction,
  postgresHandle,
  type StatementPort,
  type TransactionClient,
  type TransactionPool,
} from './handle.js'
import { nowMs } from './migrations.js'
import type { PostgresAnswer, PostgresNotice, PostgresPoolClient } from './options.js'
import { endedElsewhere, Wire } from './wire.js'

/** What all sessions of a store share. */
export interface SessionContext<Bound> {
  /** Time. */
  readonly clock: Clock
  /** The marker table, quoted. */
  readonly marker: string
  /** Makes `tx.db`. */
  readonly bind: (client: TransactionClient, pool: TransactionPool) => Bound
  /** What is known of the servers behind the connections. */
  readonly traces: Traces
  /** Whether transactions without a key take their trace with BEGIN. */
  readonly resolvesUnkeyed: boolean
  /** Who blocks a backend. */
  readonly blockers: (pid: string) => Promise<readonly Blocker[]>
}

const levels: Readonly<Record<Isolation, string>> = {
  'read-committed': 'READ COMMITTED',
  'repeatable-read': 'REPEATABLE READ',
  serializable: 'SERIALIZABLE',
}

/** A row that is purged between two statements is looked for this often. */
const mostClaimRounds = 4

/** A session on a connection. */
export class PostgresSession<Bound> implements Session<PostgresTransaction<Bound>>, StatementPort, SqlExecutor {
  readonly dialect = 'postgres'
  readonly #client: PostgresPoolClient
  readonly #context: SessionContext<Bound>
  readonly #life: HandleLife = handleLife()
  readonly #wire: Wire
  readonly #onError = (error: unknown): void => this.#life.poison(error)
  #trace: Trace | undefined
  #released = false

  constructor(client: PostgresPoolClient, context: SessionContext<Bound>) {
    this.#client = client
    this.#context = context
    const { clock, blockers } = context
    this.#wire = new Wire({ client, life: this.#life, clock, blockers })
    client.on('error', this.#onError)
  }

  get trace(): Trace | undefined {
    return this.#trace
  }

  get poisoned(): { readonly error: unknown } | undefined {
    return this.#life.poisoned
  }

  poison(error: unknown): void {
    this.#life.poison(error)
  }

  async begin(settings: BeginSettings, controls: TransactionControls): Promise<PostgresTransaction<Bound>> {
    const { traces } = this.#context
    this.#wire.lockWaitMs = settings.lockWaitMs
    this.#wire.readOnly = settings.readOnly
    const mode = settings.readOnly ? ' READ ONLY' : ''
    const traced = settings.traced !== false && this.#context.resolvesUnkeyed
    const asked = settings.readOnly ? undefined : traces.statement(this.#client, traced)
    // All of it in one message, as dear as BEGIN alone.
    const limits = limitsOf(settings)
    const question = asked === undefined ? '' : `; ${asked}`
    const text = `BEGIN ISOLATION LEVEL ${levels[settings.isolation]}${mode}; ${limits}${question}`
    let answer: PostgresAnswer
    try {
      answer = lastOf(await this.#client.query(text))
    } catch (error) {
      throw this.#beginFailed(error)
    }
    if (this.#client.getTransactionStatus() !== 'T') throw poolingUnsupported(undefined)
    if (asked !== undefined) {
      const taken = traces.take(this.#client, answer.rows[0] ?? {})
      this.#trace = taken instanceof Promise ? await taken : taken
    }
    this.#wire.pid = this.#trace?.['pid'] ?? traces.pidOf(this.#client)
    return postgresHandle(this, this, controls, this.#context.bind)
  }

  #beginFailed(error: unknown): unknown {
    if (endsConnection(error)) this.#life.poison(error)
    return isStatementPooling(error) ? poolingUnsupported(error) : error
  }

  async claim(id: StoredKey): Promise<'claimed' | Stored> {
    const { marker } = this.#context
    for (let round = 1; round <= mostClaimRounds; round++) {
      const inserted = await this.#runOnMarker(
        `INSERT INTO ${marker} (id, claimed_at_ms) VALUES ($1, ${nowMs}) ON CONFLICT (id) DO NOTHING`,
        [id],
      )
      if (inserted.rowCount === 1) return 'claimed'
      const { rows } = await this.run(`SELECT value FROM ${marker} WHERE id = $1`, [id])
      const [row] = rows
      if (row === undefined) continue
      const value = row['value']
      if (typeof value === 'string') return { value }
      // The outcome is written before COMMIT, so a committed marker without one was not written here.
      throw new RepriseError('MARKER_INVALID', 'The marker of the key is committed and has no outcome.')
    }
    throw new RepriseError('ROW_UNSETTLED', `The marker came and went ${mostClaimRounds} times while it was claimed.`)
  }

  async #runOnMarker(text: string, values: readonly unknown[]): Promise<SqlAnswer> {
    try {
      return await this.run(text, values)
    } catch (error) {
      throw signsOf(error).includes('42P01') ? migrationMissing(error) : error
    }
  }

  async record(id: StoredKey, value: string): Promise<void> {
    // Else it would wait for a savepoint that the body did not, and then commit.
    this.#life.checkBeforeCommit()
    const { rowCount } = await this.run(`UPDATE ${this.#context.marker} SET value = $2 WHERE id = $1`, [id, value])
    if (rowCount !== 1) throw new RepriseError('MARKER_INVALID', 'The marker that this transaction claimed is gone.')
  }

  async commit(): Promise<Receipt> {
    try {
      this.#refusePoisoned()
      this.#life.checkBeforeCommit()
    } finally {
      // From here on nobody can send anything that would run behind COMMIT, in no transaction at all.
      this.#life.end()
    }
    const busy = this.#wire.untilIdle()
    if (busy !== undefined) await busy
    this.#refusePoisoned()
    const status = this.#client.getTransactionStatus()
    if (status !== 'T' && status !== 'E') throw endedElsewhere()
    const notices: PostgresNotice[] = []
    const onNotice = (notice: PostgresNotice): void => {
      notices.push(notice)
    }
    const listening = this.#client as unknown as NoticeSource
    listening.on('notice', onNotice)
    try {
      const { command } = lastOf(await this.#client.query('COMMIT'))
      return this.#receipt(command, notices)
    } finally {
      listening.removeListener('notice', onNotice)
    }
  }

  #receipt(command: string, notices: readonly PostgresNotice[]): Receipt {
    if (command === 'ROLLBACK') {
      const first = this.#life.poisoned
      const message = 'COMMIT was answered with ROLLBACK: a statement had failed before, and nothing was stored.'
      throw new RepriseError('COMMIT_ROLLED_BACK', message, first === undefined ? {} : { cause: first.error })
    }
    if (notices.some(({ code }) => code === '25P01')) throw endedElsewhere()
    if (command !== 'COMMIT') {
      throw new RepriseError('COMMIT_UNCLEAR', 'COMMIT was answered with something else.')
    }
    // By the function's name, since a trigger of the user's may warn with the same code and messages are translated.
    const unreplicated = notices.some(({ routine }) => routine === 'SyncRepWaitForLSN')
    return { durability: unreplicated ? 'local' : 'promised' }
  }

  async rollback(): Promise<void> {
    this.#life.end()
    this.#wire.end()
    // The driver would queue it behind what is under way, and warn.
    const busy = this.#wire.untilIdle()
    if (busy !== undefined) await busy
    await this.#client.query('ROLLBACK')
  }

  release(fate: 'keep' | 'discard'): void {
    if (this.#released) return
    this.#released = true
    this.#wire.end()
    this.#life.end()
    try {
      const sound = fate === 'keep' && this.#wire.idle && this.#client.getTransactionStatus() === 'I'
      if (sound) this.#client.release()
      else this.#client.release(true)
      // After the pool has put its own listener on.
      this.#client.removeListener('error', this.#onError)
    } catch {
      // Released by somebody else; there is nothing left to give back.
    }
  }

  /** Sends a statement of the body. */
  send(config: string | object, values: unknown[] | undefined): Promise<PostgresAnswer> {
    return this.#wire.send(config, values)
  }

  /** Sends a statement of ours. */
  async run(text: string, values: readonly unknown[]): Promise<SqlAnswer> {
    const { rows, rowCount } = await this.send(text, [...values])
    return { rows, rowCount: rowCount ?? 0 }
  }

  /** Locks the rows of a SELECT. */
  async lock(select: string, values: readonly unknown[], wait: 'nowait' | number | undefined): Promise<SqlAnswer> {
    if (wait === 'nowait') return this.run(`${select} FOR UPDATE NOWAIT`, values)
    if (wait === undefined) return this.run(`${select} FOR UPDATE`, values)
    const waitMs = Math.min(wait, this.#wire.lockWaitMs)
    const before = this.#wire.lockWaitMs
    await this.run("SELECT set_config('lock_timeout', $1, true)", [String(wholeMs(waitMs))])
    this.#wire.lockWaitMs = waitMs
    try {
      const answer = await this.run(`${select} FOR UPDATE`, values)
      await this.run("SELECT set_config('lock_timeout', $1, true)", [String(wholeMs(before))])
      return answer
    } finally {
      this.#wire.lockWaitMs = before
    }
  }

  /** Runs the work inside a savepoint. */
  savepoint<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#wire.savepoint(work)
  }

  // COMMIT was not sent, so whatever it was, the transaction is dead.
  #refusePoisoned(): void {
    const first = this.#life.poisoned
    if (first === undefined) return
    const message = 'A statement of the transaction failed before COMMIT was sent; nothing was stored.'
    throw new RepriseError('TRANSACTION_ABORTED', message, { cause: first.error })
  }
}

interface NoticeSource {
  on(event: 'notice', listener: (notice: PostgresNotice) => void): unknown
  removeListener(event: 'notice', listener: (notice: PostgresNotice) => void): unknown
}

// A statement that outlives the body would go on with its locks until it is through; the server ends it. A wait for a lock must end as one, so its limit stays below.
// COMMIT is not bounded by it.
function limitsOf({ idleMs, lockWaitMs }: BeginSettings): string {
  const statementMs = Math.max(idleMs, lockWaitMs + 1_000)
  return `SET LOCAL idle_in_transaction_session_timeout = ${wholeMs(idleMs)}; SET LOCAL lock_timeout = ${wholeMs(lockWaitMs)}; SET LOCAL statement_timeout = ${wholeMs(statementMs)}`
}

// 0 would switch a limit off, and a fraction is no number to SET.
function wholeMs(ms: number): number {
  return Math.min(Math.max(1, Math.ceil(ms)), 2 ** 31 - 1)
}

// PgBouncer says so in English, whatever the server speaks.
function isStatementPooling(error: unknown): boolean {
  return error instanceof Error && /statement pooling/i.test(error.message)
}

function poolingUnsupported(cause: unknown): RepriseError {
  const message = 'No transaction is open after BEGIN: a pooler hands out connections by the statement.'
  return new RepriseError('POOLING_UNSUPPORTED', message, cause === undefined ? {} : { cause })
}
