// What a transaction has emitted, as SQL: the heads of its keys, the messages, and the lanes of everybody who reads
// them. Heads, and then lanes, are locked in the order of their keys, so that two transactions never wait for each
// other. Where the engine can write inside WITH all of it is one statement, which leaves with COMMIT.

import { type Emission, errorsIn, versionTaken } from '../../../atomicity/index.js'
import { RepriseError } from '../../../kernel/index.js'
import type { SqlDialect } from '../dialect.js'
import type { Procedure } from '../records/procedures.js'
import type { Query } from '../records/statements.js'
import { Values } from '../values.js'
import { type MessageTables, messageTables } from './migration.js'

/** The columns of a message, as they are written, and what they are read from. */
const written = ['id', 'type', 'subject', 'version', 'intent', 'traceparent', 'schema', 'codec', 'data'] as const

// A message of the outbox as a row of JSON; `before_last`: how many of its key come after it.
const givenColumns = {
  id: 'text',
  type: 'text',
  subject: 'text',
  key: 'text',
  version: 'number',
  intent: 'text',
  traceparent: 'text',
  schema: 'text',
  codec: 'text',
  before_last: 'number',
  data: 'text',
} as const

const keyColumns = { key: 'text', messages: 'number', after_ms: 'number' } as const

/** What the error of a version that was purged shows. */
const purgedSign = 'reprise version'

/** Rows of values, as something that is read from. */
type RowSource = (values: Values, columns: Readonly<Record<string, 'text' | 'number'>>) => string

interface GivenKey {
  readonly key: string
  messages: number
  afterMs: number
}

/** Writes what transactions emit. */
export class EmitStatements {
  readonly #dialect: SqlDialect
  readonly #tables: MessageTables
  readonly #source: string
  #one: string | undefined
  #many: string | undefined

  /**
   * @param named The quoted name of a table of Reprise, by what follows the prefix.
   * @param source Who makes the messages.
   */
  constructor(dialect: SqlDialect, named: (table: string) => string, source: string) {
    this.#dialect = dialect
    this.#tables = messageTables(named)
    this.#source = source
  }

  /** Writes them, statement by statement. */
  *emitted(emissions: readonly Emission[]): Procedure<void> {
    if (this.#dialect.writesInWith) yield this.atOnce(emissions)
    else yield* this.#byStep(emissions)
  }

  /**
   * Writes them by one statement, whose values are texts. It has one text for a single message, each of whose cells is
   * a value of its own, and one for any number of them: to read cells out of JSON, and to sort and join rows, takes the
   * server some 40 us of 260.
   */
  atOnce(emissions: readonly Emission[]): { readonly text: string; readonly values: readonly (string | null)[] } {
    const [only] = emissions
    if (only !== undefined && emissions.length === 1) {
      this.#one ??= this.#textAtOnce(oneRow)
      const cells = [only.key, 1, only.afterMs, this.#source, ...cellsOf(only, 0)]
      return { text: this.#one, values: cells.map((cell) => (cell === undefined ? null : String(cell))) }
    }
    const keys = keysOf(emissions)
    this.#many ??= this.#textAtOnce((values, columns) => this.#dialect.rowsIn(values.text(''), columns))
    return { text: this.#many, values: [jsonOfKeys(keys), this.#source, jsonOfMessages(emissions, keys)] }
  }

  // The head of a delayed message has the time at which it is due: a reader that comes later learns it from there.
  // Messages of a key are inserted in their order, which a reader of the server's log sees.
  // An epoch is taken for each key, though its head may turn out to be there: a number of the fence is lost then, and
  // nothing else.
  #textAtOnce(rows: RowSource): string {
    const { nowMs, fence } = this.#dialect
    const { head, message, fence: fences } = this.#tables
    const values = new Values(this.#dialect)
    // Of a column: what is made of values alone would be computed, and fail, when the statement is planned.
    const taken = `(h.number::text || ' ${purgedSign}')::bigint`
    const cells = written.map((name) =>
      name === 'version' ? `CASE WHEN g.version <= h.purged_version THEN ${taken} ELSE g.version END` : `g.${name}`,
    )
    return `WITH clock AS MATERIALIZED (SELECT ${nowMs} AS ms),
      heads AS (INSERT INTO ${head} AS h (key, epoch, number, at_ms)
        SELECT k.key, ${fence.next(fences)}, k.messages, clock.ms + k.after_ms FROM ${rows(values, keyColumns)} AS k, clock ORDER BY k.key
        ON CONFLICT (key) DO UPDATE SET number = h.number + excluded.number, at_ms = excluded.at_ms
        RETURNING h.key, h.epoch, h.number, h.purged_version, h.at_ms),
      told AS (${this.#tell('heads AS h', '')})
      INSERT INTO ${message} (source, key, epoch, number, at_ms, ${written.join(', ')})
      SELECT ${values.text('')}, h.key, h.epoch, h.number - g.before_last, clock.ms, ${cells.join(', ')}
      FROM ${rows(values, givenColumns)} AS g JOIN heads AS h ON h.key = g.key, clock ORDER BY h.key, g.before_last DESC`
  }

  // The writer has the whole store, so nobody comes in between.
  *#byStep(emissions: readonly Emission[]): Procedure<void> {
    const { nowMs, fence, insertNew } = this.#dialect
    const { head, message, fence: fences } = this.#tables
    const keys = keysOf(emissions)
    const counting = (write: (values: Values) => string): Query => {
      const values = new Values(this.#dialect)
      return { text: write(values), values: values.list, counts: true }
    }
    const { rowCount } = yield counting((values) => {
      const given = (column: string): string =>
        `(SELECT k.${column} FROM ${this.#keyRows(keys, values)} AS k WHERE k.key = h.key)`
      const set = `number = number + ${given('messages')}, at_ms = ${nowMs} + ${given('after_ms')}`
      const which = this.#dialect.among(`SELECT k.key FROM ${this.#keyRows(keys, values)} AS k`)
      return `UPDATE ${head} AS h SET ${set} WHERE key ${which}`
    })
    if (rowCount < keys.size) {
      const advance = fence.advance?.(fences)
      if (advance !== undefined) yield { text: advance, values: [], counts: true }
      yield counting((values) => {
        const rows = `SELECT k.key, ${fence.next(fences)}, k.messages, ${nowMs} + k.after_ms FROM ${this.#keyRows(keys, values)} AS k WHERE 1 = 1`
        return insertNew(head, 'key, epoch, number, at_ms', rows, 'key')
      })
    }
    if (emissions.some(({ version }) => version !== undefined)) yield* this.#refusePurged(emissions, keys)
    yield counting((values) => {
      const cells = written.map((name) => `g.${name}`).join(', ')
      return `INSERT INTO ${message} (source, key, epoch, number, at_ms, ${written.join(', ')})
        SELECT ${values.text(this.#source)}, h.key, h.epoch, h.number - g.before_last, ${nowMs}, ${cells}
        FROM ${this.#messageRows(emissions, keys, values)} AS g JOIN ${head} AS h ON h.key = g.key ORDER BY h.key, g.before_last DESC`
    })
    yield counting((values) => {
      const among = this.#dialect.among(`SELECT k.key FROM ${this.#keyRows(keys, values)} AS k`)
      return this.#tell(`${head} AS h`, ` AND h.key ${among}`)
    })
  }

  *#refusePurged(emissions: readonly Emission[], keys: ReadonlyMap<string, GivenKey>): Procedure<void> {
    const values = new Values(this.#dialect)
    const given = this.#messageRows(emissions, keys, values)
    const { rows } = yield {
      text: `SELECT 1 AS taken FROM ${given} AS g JOIN ${this.#tables.head} AS h ON h.key = g.key WHERE g.version <= h.purged_version LIMIT 1`,
      values: values.list,
    }
    if (rows.length > 0) throw versionTaken()
  }

  // Tells everybody who reads the outbox. A lane that is idle is due now, or after the delay of its message; of one
  // that is not, only what it knows changes.
  #tell(heads: string, which: string): string {
    const { lane, reader } = this.#tables
    return `INSERT INTO ${lane} AS l (reader, key, known_epoch, known_number, state, due_at_ms)
      SELECT r.name, h.key, h.epoch, h.number, 1, h.at_ms FROM ${heads} CROSS JOIN ${reader} AS r
      WHERE r.reads = 'outbox'${which} ORDER BY h.key, r.name
      ON CONFLICT (reader, key) DO UPDATE SET known_epoch = excluded.known_epoch, known_number = excluded.known_number,
      state = CASE WHEN l.state = 0 THEN 1 ELSE l.state END,
      due_at_ms = CASE WHEN l.state = 0 THEN excluded.due_at_ms ELSE l.due_at_ms END`
  }

  #keyRows(keys: ReadonlyMap<string, GivenKey>, values: Values): string {
    return this.#dialect.rowsIn(values.text(jsonOfKeys(keys)), keyColumns)
  }

  #messageRows(emissions: readonly Emission[], keys: ReadonlyMap<string, GivenKey>, values: Values): string {
    return this.#dialect.rowsIn(values.text(jsonOfMessages(emissions, keys)), givenColumns)
  }
}

// In the order of `givenColumns`.
function cellsOf(emission: Emission, beforeLast: number): readonly (string | number | undefined)[] {
  const { id, type, subject, key, version, intent, traceparent, schema, codec, data } = emission
  return [id, type, subject, key, version, intent, traceparent, schema, codec, beforeLast, data]
}

// One row, each of whose cells is a value.
function oneRow(values: Values, columns: Readonly<Record<string, 'text' | 'number'>>): string {
  const cells = Object.entries(columns).map(([name, type]) =>
    type === 'text' ? `${values.text('')} AS ${name}` : `${values.number(0)} AS ${name}`,
  )
  return `(SELECT ${cells.join(', ')})`
}

function jsonOfKeys(keys: ReadonlyMap<string, GivenKey>): string {
  return JSON.stringify([...keys.values()].map(({ key, messages, afterMs }) => [key, messages, afterMs]))
}

function jsonOfMessages(emissions: readonly Emission[], keys: ReadonlyMap<string, GivenKey>): string {
  const left = new Map([...keys.values()].map(({ key, messages }) => [key, messages]))
  const rows = emissions.map((emission) => {
    const { key } = emission
    const beforeLast = (left.get(key) ?? 0) - 1
    left.set(key, beforeLast)
    // As JSON has it, what is undefined in a list is null.
    return cellsOf(emission, beforeLast)
  })
  return JSON.stringify(rows)
}

// How many messages each key gets. A message with a delay has its key to itself.
function keysOf(emissions: readonly Emission[]): ReadonlyMap<string, GivenKey> {
  const keys = new Map<string, GivenKey>()
  for (const { key, afterMs } of emissions) {
    const given = keys.get(key)
    if (given === undefined) keys.set(key, { key, messages: 1, afterMs })
    else given.messages += 1
  }
  return keys
}

/**
 * What an error means to whoever emitted: MESSAGE_EXISTS, VERSION_TAKEN, or the error itself. By the name of the index,
 * where the engine tells that, or by the columns.
 */
export function emitError(error: unknown): unknown {
  for (const found of errorsIn(error)) {
    const { constraint, message } = Object(found) as { readonly constraint?: unknown; readonly message?: unknown }
    // A text, or from Prisma an object that has it.
    const index = typeof constraint === 'string' ? constraint : String(Object(constraint).index)
    const words = typeof message === 'string' ? message : ''
    if (index.endsWith('message_identity') || /UNIQUE constraint failed: \S+message\.source/.test(words)) {
      const exists = 'A message with the same source and id is there already.'
      return new RepriseError('MESSAGE_EXISTS', exists, { cause: error })
    }
    const isTaken = index.endsWith('message_version') || words.includes(purgedSign)
    if (isTaken || /UNIQUE constraint failed: \S+message\.subject/.test(words)) return versionTaken(error)
  }
  return error
}
