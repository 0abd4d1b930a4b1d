// The tables of a store in memory: what is committed, and the view that one transaction has of it.

import type { Row, SavepointSteps } from '../../atomicity/index.js'
import { RepriseError } from '../../kernel/index.js'
import { copyOf, Layer, type TableIndexes, TableView } from './table.js'

interface Table {
  readonly indexes: TableIndexes
  base: Layer
}

/** All tables of a store. */
export class Tables {
  readonly #tables = new Map<string, Table>()
  #readers = 0

  /** Makes a table; the same name twice is refused with ARGUMENT_INVALID. */
  define(name: string, { unique = [], groups = [] }: TableIndexes = {}): void {
    if (typeof name !== 'string' || name === '') {
      throw new RepriseError('ARGUMENT_INVALID', 'A table needs a name.')
    }
    if (this.#tables.has(name)) throw new RepriseError('ARGUMENT_INVALID', 'A table of this name is there already.')
    this.#tables.set(name, { indexes: structuredClone({ unique, groups }), base: new Layer(1) })
  }

  /** The view of a transaction. */
  views(readOnly: boolean): Views {
    // Whoever writes is the only one to do so, and needs no picture of what others may change meanwhile.
    if (!readOnly) return new Views(false, this.#find)
    this.#readers += 1
    const bases = new Map([...this.#tables].map(([name, table]) => [name, table.base]))
    return new Views(true, (name) => {
      // A table made after a reader began was empty then.
      return { indexes: this.#find(name).indexes, base: bases.get(name) ?? new Layer(1) }
    })
  }

  readonly #find = (name: string): Table => {
    const table = this.#tables.get(name)
    if (table !== undefined) return table
    throw noTable()
  }

  /** Lets what the view changed become what is committed. */
  commit(views: Views): void {
    for (const [name, view] of views.changed()) {
      const table = this.#tables.get(name)
      if (table === undefined) continue
      // Readers look at the old layer until they are through.
      if (this.#readers > 0) table.base = table.base.copy()
      view.merge(table.base)
    }
  }

  /** Copies of the committed rows of a table. */
  committed(name: string): readonly Row[] {
    const table = this.#tables.get(name)
    if (table === undefined) throw noTable()
    return [...table.base.rows.values()].flatMap((row) => (row === undefined ? [] : [copyOf(row)]))
  }

  /** A reader is through. */
  readerDone(): void {
    this.#readers -= 1
  }
}

/** What one transaction sees: every table it touched, in layers that can be dropped. */
export class Views implements SavepointSteps {
  /** Whether it was made to be read alone. */
  readonly readOnly: boolean
  readonly #find: (name: string) => Table
  readonly #views = new Map<string, TableView>()
  // One layer for the transaction, and one for each savepoint that is open.
  #depth = 1

  constructor(readOnly: boolean, find: (name: string) => Table) {
    this.readOnly = readOnly
    this.#find = find
  }

  /** The view of a table. */
  view(name: string): TableView {
    let view = this.#views.get(name)
    if (view === undefined) {
      const { indexes, base } = this.#find(name)
      view = this.readOnly ? new ReadOnlyView(indexes, base) : new TableView(indexes, base)
      for (let layers = 0; layers < this.#depth; layers += 1) view.push()
      this.#views.set(name, view)
    }
    return view
  }

  /** The views of the tables that were touched. */
  changed(): ReadonlyMap<string, TableView> {
    return this.#views
  }

  /** Opens a savepoint. */
  open(): void {
    this.#depth += 1
    for (const view of this.#views.values()) view.push()
  }

  /** Keeps what was done since. */
  release(): void {
    this.#depth -= 1
    for (const view of this.#views.values()) view.merge()
  }

  /** Undoes what was done since. */
  undo(): void {
    this.#depth -= 1
    for (const view of this.#views.values()) view.pop()
  }
}

class ReadOnlyView extends TableView {
  override insert(): void {
    throw readOnly()
  }

  override update(): void {
    throw readOnly()
  }

  override remove(): void {
    throw readOnly()
  }
}

function noTable(): RepriseError {
  return new RepriseError('ARGUMENT_INVALID', 'There is no table of this name; make it with table(…).')
}

function readOnly(): RepriseError {
  return new RepriseError('TRANSACTION_READ_ONLY', 'The transaction was declared read-only.')
}
