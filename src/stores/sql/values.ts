// The values of one statement, and their places in its text.

import { placeholder, type SqlDialect } from './dialect.js'

/** Values of a statement, in the order in which their places stand in its text. */
export class Values {
  readonly list: unknown[] = []
  readonly #dialect: SqlDialect

  constructor(dialect: SqlDialect) {
    this.#dialect = dialect
  }

  /** The place of a value. */
  place(value: unknown): string {
    this.list.push(value)
    return placeholder(this.#dialect, this.list.length)
  }
}
