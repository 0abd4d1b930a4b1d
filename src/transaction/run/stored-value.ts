// The result of a transaction with a key, as it is stored beside its marker: JSON, so that a repeat gets the same value.

import { readableJsonOf } from '../../kernel/index.js'

// A body that returns nothing stores nothing; no JSON text is empty.
const nothing = ''

/** The value as text. Refuses with JSON_VALUE_UNSUPPORTED what JSON would not give back, before anything is committed. */
export function printValue(value: unknown): string {
  return value === undefined ? nothing : readableJsonOf(value)
}

/** The value of a stored text. The first caller gets it too, so that first and repeated answers are alike. */
export function parseValue<Result>(text: string): Result {
  return (text === nothing ? undefined : JSON.parse(text)) as Result
}
