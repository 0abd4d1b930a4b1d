// Fields of requests and answers: the former one by one, the latter set beside those that others have set before.

import { type Answer, isBodiless } from '../core/index.js'

/** Something that holds the fields of an answer: a response of Node is one. */
export interface FieldTarget {
  /** The values of a field that were set before; undefined: none. */
  getHeader(name: string): number | string | readonly string[] | undefined
  setHeader(name: string, value: string | string[]): unknown
  removeHeader(name: string): unknown
}

// A list grows: what was shown or varied by before stays so.
const lists = new Set(['access-control-expose-headers', 'vary'])

/**
 * Fields by name in lower case, each with every value.
 *
 * @param flat Names and values in turn, as `rawHeaders` of Node has them.
 */
export function fieldsOf(flat: readonly string[]): Record<string, string[]> {
  const fields = Object.create(null) as Record<string, string[]>
  for (let place = 0; place + 1 < flat.length; place += 2) {
    const name = (flat[place] as string).toLowerCase()
    const value = flat[place + 1] as string
    const known = fields[name]
    if (known === undefined) fields[name] = [value]
    else known.push(value)
  }
  return fields
}

/** A response of Node, as far as its fields go. */
interface FieldHolder extends FieldTarget {
  getHeaders(): Readonly<Record<string, number | string | readonly string[] | undefined>>
}

/** The fields that a response has before a handler runs: what it changes can be told, and taken back. */
export function fieldsBefore(holder: FieldHolder): {
  /** The fields that were set since, or set anew. */
  changed(): [name: string, value: string][]
  restore(): void
} {
  const before = { ...holder.getHeaders() }
  return {
    changed: () =>
      Object.entries(holder.getHeaders()).flatMap(([name, value]) =>
        value === undefined || String(before[name]) === String(value)
          ? []
          : [value].flat().map((one): [string, string] => [name, String(one)]),
      ),
    restore() {
      for (const name of Object.keys(holder.getHeaders())) if (!(name in before)) holder.removeHeader(name)
      for (const [name, value] of Object.entries(before)) {
        if (value !== undefined) holder.setHeader(name, typeof value === 'number' ? String(value) : (value as string))
      }
    },
  }
}

/** Sets the fields of an answer, Content-Length included where its length is known. */
export function setFields(target: FieldTarget, { status, headers, body }: Answer): void {
  const fields = new Map<string, string | string[]>()
  for (const [name, value] of headers) {
    const known = fields.get(name)
    fields.set(name, known === undefined ? value : [known, value].flat())
  }
  for (const [name, value] of fields) {
    // What a handler has set on the framework's own answer may be in both.
    if (name === 'set-cookie') target.setHeader(name, [...new Set(valuesOf(target, name, value))])
    else if (lists.has(name)) target.setHeader(name, union(valuesOf(target, name, value)))
    else target.setHeader(name, value)
  }
  let length: number | undefined
  // RFC 9110, 8.6: an answer that cannot have a body has no length either, but for 205, which says that it is empty.
  if (isBodiless(status)) length = status === 205 ? 0 : undefined
  else if (body === null) length = 0
  else if (typeof body === 'string') length = Buffer.byteLength(body)
  else if (body instanceof Uint8Array) length = body.length
  if (length === undefined) target.removeHeader('content-length')
  else target.setHeader('content-length', String(length))
}

function valuesOf(target: FieldTarget, name: string, value: string | string[]): string[] {
  const before = target.getHeader(name)
  return [typeof before === 'number' ? String(before) : (before ?? []), value].flat()
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
