// Several statements in one write, by the interface that pg has for cursors (Submittable): every client of a pool takes
// it.
//
// Reprise's own statements come first, prepared under names that are by their texts. A statement of the body may come
// after them: it is pg's own Query, which prepares, describes and reads it as it does by itself. One Sync ends all of
// it: where a statement fails, the server skips the rest.

import { isPromiseLike, sha256 } from '../../../kernel/index.js'
import type { PostgresAnswer, PostgresPoolClient } from '../options.js'

/** One of Reprise's own statements. */
export interface OwnStatement {
  readonly name: string
  readonly text: string
}

/** A statement with a name that is by its text: the same name is the same statement, whoever prepared it. */
export function ownStatement(text: string): OwnStatement {
  const digest = sha256(text)
    .replace(/[^A-Za-z0-9]/g, '')
    .slice(-32)
  return { name: `reprise_${digest}`, text }
}

/** One of Reprise's own statements with its values. */
export interface Step {
  readonly statement: OwnStatement
  readonly values: readonly string[]
}

/** The messages of a connection of pg, as far as they are used here. */
interface Messages {
  readonly stream: { cork?(): void; uncork?(): void }
  /** The named statements of which pg has sent, but not seen parsed, the text; and those that it has seen parsed. */
  readonly submittedNamedStatements: Record<string, string | undefined>
  readonly parsedStatements: Record<string, string | undefined>
  parse(statement: { readonly name: string; readonly text: string }): void
  bind(config: { readonly statement: string; readonly values: readonly string[] }): void
  execute(): void
  flush(): void
  sync(): void
  on(event: 'parseComplete', listener: () => void): unknown
}

/** pg's own Query. */
interface DriverQuery {
  readonly name?: string | undefined
  readonly text: string
  readonly _result: object
  binary?: boolean
  queryMode?: string
  callback: (error: unknown, result?: PostgresAnswer) => void
  submit(connection: Messages): Error | null | undefined
  handleRowDescription(message: unknown): void
  handleDataRow(message: unknown): void
  handleCommandComplete(message: unknown, connection: Messages): void
  handleEmptyQuery(connection: Messages): void
  handlePortalSuspended(connection: Messages): void
  handleCopyInResponse(connection: Messages): void
  handleCopyData(message: unknown, connection: Messages): void
  handleError(error: unknown, connection: Messages): void
  handleReadyForQuery(connection: Messages): void
}

interface BatchClient {
  readonly connection?: Partial<Messages>
  readonly pipeline?: boolean
  readonly constructor: { readonly Query?: new (config: string | object, values?: unknown[]) => DriverQuery }
  query(batch: Batch): unknown
}

/**
 * Whether a client can be given a batch: it is the one that is written in JavaScript, by what it has, and not in its
 * pipeline mode, which refuses everything but queries.
 */
export function takesBatches(client: PostgresPoolClient): boolean {
  const { connection, pipeline, constructor: made } = client as unknown as BatchClient
  const speaks = (['parse', 'bind', 'execute', 'flush', 'sync', 'on'] as const).every(
    (message) => typeof connection?.[message] === 'function',
  )
  return speaks && pipeline !== true && typeof made.Query === 'function'
}

// Several statements in one text, a copy, and a place without its value: what only the simple protocol takes, or
// refuses in another way.
const simpleOnly = /;\s*\S|\bcopy\b|\$\d/i

/** A statement of the body for the end of a batch. Undefined: it has to be sent by itself. */
export function lastOfBatch(
  client: PostgresPoolClient,
  config: string | object,
  values: unknown[] | undefined,
): DriverQuery | undefined {
  const { Query } = (client as unknown as BatchClient).constructor
  const given = (typeof config === 'string' ? { text: config } : config) as Readonly<Record<string, unknown>>
  const list = values ?? given['values']
  const isPlain = given['name'] === undefined && (!Array.isArray(list) || list.length === 0)
  // In parts, or with a limit of time of its own.
  const isSpecial = given['rows'] !== undefined || given['query_timeout'] !== undefined
  if (isSpecial || (isPlain && simpleOnly.test(String(given['text'])))) return undefined
  const query = Query === undefined ? undefined : new Query(config, values)
  if (query !== undefined) query.queryMode = 'extended'
  return query
}

/** What is known of the own statements of a connection. */
interface Prepared {
  readonly names: Set<string>
  active: Batch | undefined
}

const prepared = new WeakMap<object, Prepared>()

function preparedOn(connection: Messages): Prepared {
  let known = prepared.get(connection)
  if (known === undefined) {
    const made: Prepared = { names: new Set(), active: undefined }
    known = made
    prepared.set(connection, made)
    // Of this message pg tells a query nothing.
    connection.on('parseComplete', () => made.active?.parsed(made.names, connection))
  }
  return known
}

/** The backend has lost what was prepared, or has what it should not have: all of it is prepared anew. */
export function forgetPrepared(client: PostgresPoolClient): void {
  const { connection } = client as unknown as BatchClient
  if (connection !== undefined) prepared.get(connection)?.names.clear()
}

/** Several statements that are sent together. */
export class Batch {
  /** All of them, for those who trace statements. Sent as a text it would change nothing: it begins a transaction. */
  readonly text: string
  // Not the body's name: pg would take it for parsed when the first statement is. And there, so that a tracer that adds
  // to statements without a name leaves this one alone.
  readonly name: undefined
  /** As pg's own Query has them: a client completes them where it is told to. */
  readonly _result: object | undefined
  binary = false
  callback: (error: unknown, answer?: PostgresAnswer) => void = ignore
  /** Whether it was sent. */
  submitted = false
  /** How many of the own statements were carried out. The next one is the one that failed, where one did. */
  done = 0
  /** The rows of the own statements, as text. Under no name that pg gives a meaning to. */
  readonly ownRows: (readonly (string | null)[])[] = []
  readonly #steps: readonly Step[]
  readonly #last: DriverQuery | undefined
  readonly #opened: (() => void) | undefined
  readonly #named: boolean
  readonly #parsing: (string | DriverQuery)[] = []
  #withdrawn = false

  /**
   * @param last A statement of the body, behind the own ones. Default: none.
   * @param opened Called when the own statements are answered, which they are before the last one is carried out.
   * @param named Whether the own statements are prepared under their names; else they are parsed each time.
   */
  constructor(steps: readonly Step[], last: DriverQuery | undefined, opened: (() => void) | undefined, named: boolean) {
    const texts = steps.map(({ statement }) => statement.text)
    this.text = (last === undefined ? texts : [...texts, last.text]).join('; ')
    this.name = undefined
    this._result = last?._result
    this.#steps = steps
    this.#last = last
    this.#opened = opened
    this.#named = named
    if (last !== undefined) last.callback = (error, result) => this.callback(error, result)
  }

  /** It is not to be sent any more. */
  withdraw(): void {
    this.#withdrawn = true
  }

  submit(connection: Messages): Error | null {
    if (this.#withdrawn) return new Error('The batch was withdrawn.')
    const { stream } = connection
    const known = preparedOn(connection)
    this.submitted = true
    known.active = this
    stream.cork?.()
    try {
      for (const { statement, values } of this.#steps) {
        const name = this.#named ? statement.name : ''
        if (!known.names.has(name)) {
          connection.parse({ name, text: statement.text })
          this.#parsing.push(name)
        }
        connection.bind({ statement: name, values })
        connection.execute()
      }
      if (this.#last === undefined) connection.sync()
      else this.#submitLast(this.#last, connection)
    } finally {
      stream.uncork?.()
    }
    return null
  }

  #submitLast(last: DriverQuery, connection: Messages): void {
    // The answers so far are sent at once: they show that somebody is there, however long the statement takes.
    connection.flush()
    last.binary = this.binary
    const refused = last.submit(connection)
    if (refused) {
      connection.sync()
      last.handleError(refused, connection)
    } else if (last.name !== undefined && connection.submittedNamedStatements[last.name] !== undefined) {
      this.#parsing.push(last)
    }
  }

  /** A statement was parsed: from now on its name stands for it. */
  parsed(names: Set<string>, { parsedStatements, submittedNamedStatements }: Messages): void {
    const first = this.#parsing.shift()
    if (typeof first === 'string') {
      if (first !== '') names.add(first)
    } else if (first?.name !== undefined) {
      parsedStatements[first.name] = first.text
      delete submittedNamedStatements[first.name]
    }
  }

  #over(connection: Messages): void {
    preparedOn(connection).active = undefined
    for (const left of this.#parsing.splice(0)) {
      if (typeof left !== 'string' && left.name !== undefined) delete connection.submittedNamedStatements[left.name]
    }
  }

  get #isLast(): boolean {
    return this.done === this.#steps.length
  }

  handleRowDescription(message: unknown): void {
    this.#last?.handleRowDescription(message)
  }

  handleDataRow(message: { readonly fields: readonly (string | null)[] }): void {
    if (this.#isLast) this.#last?.handleDataRow(message)
    else this.ownRows.push(message.fields)
  }

  handleCommandComplete(message: unknown, connection: Messages): void {
    if (this.#isLast) {
      this.#last?.handleCommandComplete(message, connection)
      return
    }
    this.done += 1
    if (this.#isLast) this.#opened?.()
  }

  handleEmptyQuery(connection: Messages): void {
    this.#last?.handleEmptyQuery(connection)
  }

  handlePortalSuspended(connection: Messages): void {
    this.#last?.handlePortalSuspended(connection)
  }

  handleCopyInResponse(connection: Messages): void {
    this.#last?.handleCopyInResponse(connection)
  }

  handleCopyData(message: unknown, connection: Messages): void {
    this.#last?.handleCopyData(message, connection)
  }

  handleError(error: unknown, connection: Messages): void {
    this.#over(connection)
    if (this.#last !== undefined && this.#isLast) this.#last.handleError(error, connection)
    else this.callback(error)
  }

  handleReadyForQuery(connection: Messages): void {
    this.#over(connection)
    if (this.#last === undefined) this.callback(null)
    else this.#last.handleReadyForQuery(connection)
  }
}

/**
 * Sends a batch; the answer is that of its last statement. Undefined: the client did not take it as it is, since
 * something around it makes another query of it, or answers later. Whatever was sent instead, nothing is committed.
 */
export function sendBatch(client: PostgresPoolClient, batch: Batch): Promise<PostgresAnswer | undefined> | undefined {
  const answer = new Promise<PostgresAnswer | undefined>((resolve, reject) => {
    batch.callback = (error, result) => {
      if (error === null || error === undefined) resolve(result)
      else reject(error)
    }
  })
  try {
    const returned = (client as unknown as BatchClient).query(batch)
    if (isPromiseLike(returned)) returned.then(ignore, ignore)
  } catch (error) {
    if (batch.submitted) throw error
  }
  if (batch.submitted) return answer.catch(shownFromHere)
  batch.withdraw()
  answer.catch(ignore)
  return undefined
}

// As pg does: the stack of an error leads to whoever sent the statement, and not into the socket.
function shownFromHere(error: unknown): never {
  if (error instanceof Error) Error.captureStackTrace(error)
  throw error
}

const ignore = (): void => undefined
