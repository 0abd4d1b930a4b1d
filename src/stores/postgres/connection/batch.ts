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

/** As many texts have a name; those that come after are parsed each time. A connection keeps what has a name. */
const mostNames = 256
const owned = new Map<string, OwnStatement>()

/** A statement with a name that is by its text: the same name is the same statement, whoever prepared it. */
export function ownStatement(text: string): OwnStatement {
  let statement = owned.get(text)
  if (statement === undefined) {
    if (owned.size >= mostNames) return { name: '', text }
    const digest = sha256(text)
      .replace(/[^A-Za-z0-9]/g, '')
      .slice(-32)
    statement = { name: `reprise_${digest}`, text }
    owned.set(text, statement)
  }
  return statement
}

/** One of Reprise's own statements with its values. */
export interface Step {
  readonly statement: OwnStatement
  /** Undefined: it is only prepared, where it has a name, and carried out later. */
  readonly values: readonly (string | null)[] | undefined
}

/** The answer to a step: its rows as text, and its command tag, such as `INSERT 0 1`. */
export interface StepAnswer {
  readonly rows: readonly (readonly (string | null)[])[]
  readonly tag: string
}

/** The messages of a connection of pg, as far as they are used here. */
interface Messages {
  readonly stream: { cork?(): void; uncork?(): void }
  /** The named statements of which pg has sent, but not seen parsed, the text; and those that it has seen parsed. */
  readonly submittedNamedStatements: Record<string, string | undefined>
  readonly parsedStatements: Record<string, string | undefined>
  parse(statement: { readonly name: string; readonly text: string }): void
  bind(config: { readonly statement: string; readonly values: readonly (string | null)[] }): void
  execute(): void
  flush(): void
  sync(): void
  on(event: 'parseComplete', listener: () => void): unknown
  removeListener(event: 'parseComplete', listener: () => void): unknown
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

// The names of the own statements that are prepared on a connection.
const prepared = new WeakMap<object, Set<string>>()

/** The backend has lost what was prepared, or has what it should not have: all of it is prepared anew. */
export function forgetPrepared(client: PostgresPoolClient): void {
  const { connection } = client as unknown as BatchClient
  if (connection !== undefined) prepared.delete(connection)
}

/** Several statements that are sent together. */
export class Batch {
  // Not the body's name: pg would take it for parsed when the first statement is. And there, so that a tracer that adds
  // to statements without a name leaves this one alone.
  readonly name: undefined
  /** As pg's own Query has them: a client completes them where it is told to. */
  readonly _result: object | undefined
  binary: boolean
  callback: (error: unknown, answer?: PostgresAnswer | readonly StepAnswer[]) => void
  /** Whether it was sent. */
  submitted: boolean
  /**
   * The answers to the own statements that were carried out. The next one is the one that failed, where one did. Under
   * no name that pg gives a meaning to.
   */
  readonly answers: StepAnswer[]
  #rows: (readonly (string | null)[])[]
  // How many of the own statements are carried out.
  #count: number
  /** The own statements. */
  readonly steps: readonly Step[]
  readonly #last: DriverQuery | undefined
  readonly #opened: (() => void) | undefined
  readonly #named: boolean
  readonly #parsing: (string | DriverQuery)[]
  #heard: (() => void) | undefined
  #withdrawn: boolean

  /**
   * @param last A statement of the body, behind the own ones. Default: none.
   * @param opened Called when the own statements are answered, which they are before the last one is carried out.
   * @param named Whether the own statements are prepared under their names; else they are parsed each time.
   */
  constructor(steps: readonly Step[], last: DriverQuery | undefined, opened: (() => void) | undefined, named: boolean) {
    this.name = undefined
    this._result = last?._result
    this.binary = false
    this.callback = ignore
    this.submitted = false
    this.answers = []
    this.#rows = []
    this.#count = 0
    for (const { values } of steps) if (values !== undefined) this.#count += 1
    this.#parsing = []
    this.#withdrawn = false
    this.steps = steps
    this.#last = last
    this.#opened = opened
    this.#named = named
    if (last !== undefined) last.callback = (error, result) => this.callback(error, result)
  }

  /**
   * All of them, for those who trace statements. Sent as a text it would change nothing: it begins a transaction, or
   * has places without values in its first statement.
   */
  get text(): string {
    const texts = this.steps.filter(({ values }) => values !== undefined).map(({ statement }) => statement.text)
    return (this.#last === undefined ? texts : [...texts, this.#last.text]).join('; ')
  }

  /** It is not to be sent any more. */
  withdraw(): void {
    this.#withdrawn = true
  }

  submit(connection: Messages): Error | null {
    if (this.#withdrawn) return new Error('The batch was withdrawn.')
    const { stream } = connection
    let names = prepared.get(connection)
    if (names === undefined) {
      names = new Set()
      prepared.set(connection, names)
    }
    this.submitted = true
    stream.cork?.()
    try {
      for (const { statement, values } of this.steps) {
        const name = this.#named ? statement.name : ''
        if (values === undefined && name === '') continue
        if (!names.has(name) && (name === '' || !this.#parsing.includes(name))) {
          connection.parse({ name, text: statement.text })
          this.#parsing.push(name)
        }
        if (values === undefined) continue
        connection.bind({ statement: name, values })
        connection.execute()
      }
      if (this.#last === undefined) connection.sync()
      else this.#submitLast(this.#last, connection)
      if (this.#parsing.length > 0) this.#hear(names, connection)
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

  // Of the message that a statement was parsed pg tells a query nothing. From then on its name stands for it.
  #hear(names: Set<string>, connection: Messages): void {
    const { parsedStatements, submittedNamedStatements } = connection
    this.#heard = () => {
      const first = this.#parsing.shift()
      if (typeof first === 'string') {
        if (first !== '') names.add(first)
      } else if (first?.name !== undefined) {
        parsedStatements[first.name] = first.text
        delete submittedNamedStatements[first.name]
      }
    }
    connection.on('parseComplete', this.#heard)
  }

  // What was sent and is not parsed by now will not be.
  #over(connection: Messages, heard: () => void): void {
    connection.removeListener('parseComplete', heard)
    for (const left of this.#parsing.splice(0)) {
      if (typeof left !== 'string' && left.name !== undefined) delete connection.submittedNamedStatements[left.name]
    }
  }

  handleRowDescription(message: unknown): void {
    this.#last?.handleRowDescription(message)
  }

  handleDataRow(message: { readonly fields: readonly (string | null)[] }): void {
    if (this.answers.length < this.#count) this.#rows.push(message.fields)
    else this.#last?.handleDataRow(message)
  }

  handleCommandComplete(message: { readonly text: string }, connection: Messages): void {
    if (this.answers.length === this.#count) {
      this.#last?.handleCommandComplete(message, connection)
      return
    }
    this.answers.push({ rows: this.#rows, tag: message.text })
    this.#rows = []
    if (this.answers.length === this.#count) this.#opened?.()
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
    if (this.#heard !== undefined) this.#over(connection, this.#heard)
    if (this.#last !== undefined && this.answers.length === this.#count) this.#last.handleError(error, connection)
    else this.callback(error)
  }

  handleReadyForQuery(connection: Messages): void {
    if (this.#heard !== undefined) this.#over(connection, this.#heard)
    if (this.#last === undefined) this.callback(null, this.answers)
    else this.#last.handleReadyForQuery(connection)
  }
}

/**
 * Sends a batch; the answer is that of the statement of the body, or the answers to the own ones where there is none.
 * Undefined: the client does not take it as it is, since it cannot, or something around it makes another query of it or
 * answers later; it is given no other one. Whatever was sent instead, nothing is committed.
 */
export function sendBatch<Answer extends PostgresAnswer | readonly StepAnswer[]>(
  client: PostgresPoolClient,
  connection: { batches: boolean; proven: boolean },
  batch: Batch,
): Promise<Answer> | undefined {
  if (!connection.batches) return undefined
  const answer = new Promise<Answer>((resolve, reject) => {
    batch.callback = (error, result) => {
      if (error === null || error === undefined) resolve(result as Answer)
      else reject(error)
    }
  })
  try {
    const returned = (client as unknown as BatchClient).query(batch)
    if (isPromiseLike(returned)) returned.then(ignore, ignore)
  } catch (error) {
    if (batch.submitted) throw error
  }
  if (batch.submitted) {
    connection.proven = true
    return answer.catch(shownFromHere)
  }
  connection.batches = false
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
