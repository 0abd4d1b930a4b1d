// The values of one statement, and their places in its text.

import { RepriseError } from '../../kernel/index.js'
import { placeholder, type SqlDialect } from './dialect.js'

/** The values of a statement, which the caller gave. What is no list is refused: a text would be taken for its letters, and bytes without a list around them end the process in one driver. */
export function listOfValues(values: unknown): readonly unknown[] {
  if (Array.isArray(values)) return values
  throw new RepriseError('ARGUMENT_INVALID', 'The values of a statement are a list, one for each of its placeholders.')
}

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
