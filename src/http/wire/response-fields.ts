// Fields of answers: set beside those that others have set before, and never in their place where they are lists.

import { type FinishedAnswer, isBodiless } from '../core/index.js'

/** Something that holds the fields of an answer. */
export interface FieldTarget {
  /** The values of a field that were set before; undefined: none. */
  get(name: string): string | readonly string[] | undefined
  /** Sets a field. */
  set(name: string, value: string | string[]): void
  /** Takes a field away. */
  remove(name: string): void
}

// A list grows: what was shown or varied by before stays so.
const lists = new Set(['access-control-expose-headers', 'vary'])

/** Fields by name in lower case, each with every value. */
export function fieldsOf(pairs: Iterable<readonly [string, string]>): Record<string, string[]> {
  const fields = Object.create(null) as Record<string, string[]>
  for (const [name, value] of pairs) addField(fields, name, value)
  return fields
}

/** Adds a value to those of a field. */
export function addField(fields: Record<string, string[]>, name: string, value: string): void {
  const lower = name.toLowerCase()
  const known = fields[lower]
  if (known === undefined) fields[lower] = [value]
  else known.push(value)
}

/** Sets the fields of an answer, Content-Length included where its length is known. */
export function mergeInto(target: FieldTarget, answer: FinishedAnswer): void {
  const { headers } = answer
  for (let place = 0; place < headers.length; place++) {
    const [name, value] = headers[place] as readonly [string, string]
    if (indexOf(headers, name, 0) < place) continue
    const isSingle = indexOf(headers, name, place + 1) < 0
    const values = isSingle ? [value] : headers.filter(([other]) => other === name).map(([, each]) => each)
    // What a handler has set on the framework's own answer may be in both.
    if (name === 'set-cookie') target.set(name, [...new Set([...beforeIn(target, name), ...values])])
    else if (lists.has(name)) target.set(name, union([...beforeIn(target, name), ...values]))
    else target.set(name, isSingle ? value : values)
  }
  const length = lengthOf(answer)
  if (length === undefined) target.remove('content-length')
  else target.set('content-length', String(length))
}

function indexOf(headers: FinishedAnswer['headers'], name: string, start: number): number {
  for (let place = start; place < headers.length; place++) if (headers[place]?.[0] === name) return place
  return -1
}

function beforeIn(target: FieldTarget, name: string): readonly string[] {
  return [target.get(name) ?? []].flat()
}

/** Whether the bytes of an answer are sent: not with a status that has none, and not to HEAD. */
export function isSent(answer: FinishedAnswer, method: string | undefined): boolean {
  return !isBodiless(answer.status) && method !== 'HEAD'
}

/** The Content-Length of an answer; undefined: there is none (RFC 9110, 8.6), or it is not known. */
export function lengthOf({ status, body }: FinishedAnswer): number | undefined {
  if (status === 205) return 0
  return isBodiless(status) || !(body instanceof Uint8Array) ? undefined : body.length
}

function union(values: readonly string[]): string {
  const seen = new Map<string, string>()
  for (const name of values.flatMap((value) => value.split(','))) {
    const trimmed = name.trim()
    const lower = trimmed.toLowerCase()
    if (trimmed !== '' && !seen.has(lower)) seen.set(lower, trimmed)
  }
  return [...seen.values()].join(', ')
}
