// How values get into a statement.

import type { SqlDialect } from './dialect.js'

/** Puts values into a statement; the answer is an SQL expression. */
export interface Binding {
  text(value: string): string
  /** A whole number. */
  number(value: number): string
}

/** Values as parameters of one statement, in the order in which their places stand in its text. */
export class Values implements Binding {
  readonly list: unknown[] = []
  readonly #dialect: SqlDialect

  constructor(dialect: SqlDialect) {
    this.#dialect = dialect
  }

  /** The place of a value whose type the engine infers. */
  place(value: unknown): string {
    return this.#dialect.placeholder(this.list.push(value))
  }

  text(value: string | null): string {
    return this.#dialect.placeholder(this.list.push(value), 'text')
  }

  number(value: number | null): string {
    return this.#dialect.placeholder(this.list.push(value), 'number')
  }
}
