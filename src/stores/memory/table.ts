// A table in memory, in layers: what was committed, over it the open transaction, over that its savepoints. Undoing is
// dropping a layer.

import type { ColumnValue, Match, Row } from '../../atomicity/index.js'
import { RepriseError } from '../../kernel/index.js'

/** How a table is made. */
export interface TableOptions {
  /** Its unique indexes: lists of columns. A null makes a row distinct, as in SQL. Default: none. */
  readonly unique?: readonly (readonly string[])[]
}

type Columns = readonly string[]

/** The indexes of a table of the store itself. */
export interface TableIndexes extends TableOptions {
  /** Columns that rows are looked for by, several at a time, none of them null. Default: none. */
  readonly groups?: readonly Columns[]
}

/** Rows and index entries of one layer; undefined in place of a row or an entry: removed here. */
export class Layer {
  readonly rows: Map<number, Row | undefined> = new Map()
  readonly entries: Map<string, number | undefined> = new Map()
  /** Rows that were put into a group in this layer. A row that has left it since is still named in layers above. */
  readonly groups: Map<string, Set<number>> = new Map()
  nextId: number

  constructor(nextId: number) {
    this.nextId = nextId
  }

  /** A copy for a writer, while readers still look at this one. */
  copy(): Layer {
    const copy = new Layer(this.nextId)
    for (const [id, row] of this.rows) copy.rows.set(id, row)
    for (const [entry, id] of this.entries) copy.entries.set(entry, id)
    for (const [group, ids] of this.groups) copy.groups.set(group, new Set(ids))
    return copy
  }

  /** Puts a row into a group. */
  join(group: string, id: number): void {
    const ids = this.groups.get(group)
    if (ids === undefined) this.groups.set(group, new Set([id]))
    else ids.add(id)
  }

  /** Takes a row out of a group. */
  leave(group: string, id: number): void {
    const ids = this.groups.get(group)
    if (ids?.delete(id) && ids.size === 0) this.groups.delete(group)
  }
}

/** A view of a table: a stack of layers, of which the top one is written to. */
export class TableView {
  readonly #unique: readonly Columns[]
  readonly #groups: readonly Columns[]
  readonly #layers: Layer[]

  constructor({ unique = [], groups = [] }: TableIndexes, base: Layer) {
    this.#unique = unique
    this.#groups = groups
    this.#layers = [base]
  }

  /** Puts an empty layer on top. */
  push(): void {
    this.#layers.push(new Layer(this.#top().nextId))
  }

  /** Drops the top layer. */
  pop(): void {
    this.#layers.pop()
  }

  /** Lets the top layer's changes become those of the one below, or of `base` for the lowest. */
  merge(base?: Layer): void {
    const from = this.#layers.pop()
    const into = base ?? this.#top()
    if (from === undefined) return
    const lowest = this.#layers.length === 1
    for (const [id, row] of from.rows) {
      // Nothing is above the lowest layer, and who has left a group is taken out of it.
      if (lowest) for (const group of this.#groupsOf(into.rows.get(id))) into.leave(group, id)
      put(into.rows, id, row, lowest)
      if (lowest) for (const group of this.#groupsOf(row)) into.join(group, id)
    }
    if (!lowest) for (const [group, ids] of from.groups) for (const id of ids) into.join(group, id)
    for (const [entry, id] of from.entries) put(into.entries, entry, id, lowest)
    into.nextId = from.nextId
  }

  /** Inserts a copy of the row; refuses with UNIQUE_VIOLATION. */
  insert(row: Row): void {
    const top = this.#top()
    const copy = copyOf(row)
    this.#refuseTaken(copy, undefined)
    const id = top.nextId
    top.nextId += 1
    top.rows.set(id, copy)
    for (const entry of this.#entriesOf(copy)) top.entries.set(entry, id)
    for (const group of this.#groupsOf(copy)) top.join(group, id)
  }

  /** Sets columns of a row. */
  update(id: number, set: Match): void {
    const before = this.row(id)
    if (before === undefined) return
    const after = copyOf({ ...before, ...set })
    this.#refuseTaken(after, id)
    const top = this.#top()
    for (const entry of this.#entriesOf(before)) top.entries.set(entry, undefined)
    for (const entry of this.#entriesOf(after)) top.entries.set(entry, id)
    for (const group of this.#groupsOf(after)) top.join(group, id)
    top.rows.set(id, after)
  }

  /** Removes a row. */
  remove(id: number): void {
    const row = this.row(id)
    if (row === undefined) return
    const top = this.#top()
    for (const entry of this.#entriesOf(row)) top.entries.set(entry, undefined)
    top.rows.set(id, undefined)
  }

  /** The row of an id, not a copy. */
  row(id: number): Row | undefined {
    for (let index = this.#layers.length - 1; index >= 0; index -= 1) {
      const layer = this.#layers[index]
      if (layer?.rows.has(id)) return layer.rows.get(id)
    }
    return undefined
  }

  /** The ids of the rows that have these values, oldest first. A null matches a null. */
  find(where: Match): number[] {
    const names = Object.keys(where)
    const index = this.#unique.find((columns) => columns.every((column) => names.includes(column)))
    const entry = index === undefined ? undefined : entryOf(this.#unique, index, where)
    if (entry !== undefined) {
      const id = this.#entry(entry)
      return id !== undefined && matches(this.row(id), where) ? [id] : []
    }
    const group = this.#groups.find((columns) => columns.every((column) => names.includes(column)))
    const ids = group === undefined ? this.#ids() : this.#members(groupOf(this.#groups, group, where))
    return [...ids].filter((id) => matches(this.row(id), where)).sort((a, b) => a - b)
  }

  /** Whether the columns are a unique index of the table. */
  isUnique(by: readonly string[]): boolean {
    return this.#unique.some((columns) => columns.length === by.length && columns.every((name) => by.includes(name)))
  }

  #top(): Layer {
    return this.#layers.at(-1) as Layer
  }

  #entry(entry: string): number | undefined {
    for (let index = this.#layers.length - 1; index >= 0; index -= 1) {
      const layer = this.#layers[index]
      if (layer?.entries.has(entry)) return layer.entries.get(entry)
    }
    return undefined
  }

  #ids(): Set<number> {
    const ids = new Set<number>()
    for (const layer of this.#layers) for (const id of layer.rows.keys()) ids.add(id)
    return ids
  }

  // Those that were put into a group in one of the layers, also if they have left it since.
  #members(group: string): Set<number> {
    const ids = new Set<number>()
    for (const layer of this.#layers) for (const id of layer.groups.get(group) ?? []) ids.add(id)
    return ids
  }

  #refuseTaken(row: Row, self: number | undefined): void {
    for (const entry of this.#entriesOf(row)) {
      const holder = this.#entry(entry)
      if (holder === undefined || holder === self) continue
      throw new RepriseError('UNIQUE_VIOLATION', 'A row with the same unique key is there already.')
    }
  }

  #entriesOf(row: Row): string[] {
    return this.#unique.map((columns) => entryOf(this.#unique, columns, row)).filter((entry) => entry !== undefined)
  }

  #groupsOf(row: Row | undefined): string[] {
    return row === undefined ? [] : this.#groups.map((columns) => groupOf(this.#groups, columns, row))
  }
}

/** A copy that shares nothing with the original. Refuses what no column can hold with ARGUMENT_INVALID. */
export function copyOf(row: Row): Row {
  for (const value of Object.values(row)) {
    if (!isColumnValue(value)) {
      throw new RepriseError('ARGUMENT_INVALID', 'A column holds text, a number, a boolean, null or bytes.')
    }
  }
  return structuredClone(row)
}

function isColumnValue(value: unknown): value is ColumnValue {
  return value === null || value instanceof Uint8Array || /^(string|number|bigint|boolean)$/.test(typeof value)
}

// A row without a value for one of the columns, or with null in it, is distinct from every other.
function entryOf(unique: readonly Columns[], columns: Columns, row: Row): string | undefined {
  const parts = columns.map((column) => row[column] ?? null)
  return parts.includes(null) ? undefined : `${unique.indexOf(columns)}${JSON.stringify(parts.map(spell))}`
}

function groupOf(groups: readonly Columns[], columns: Columns, row: Row): string {
  return `${groups.indexOf(columns)}${JSON.stringify(columns.map((column) => spell(row[column])))}`
}

// 1 and 1n are one number to a database, 1 and '1' are not.
function spell(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'bigint') return `n${value}`
  if (value instanceof Uint8Array) return `x${value.join()}`
  return `${(typeof value)[0]}${String(value)}`
}

function matches(row: Row | undefined, where: Match): boolean {
  if (row === undefined) return false
  return Object.entries(where).every(([column, value]) => spell(row[column] ?? null) === spell(value))
}

// In the lowest layer nothing lies below that a removed entry would have to hide.
function put<Key, Value>(map: Map<Key, Value | undefined>, key: Key, value: Value | undefined, lowest: boolean): void {
  if (value === undefined && lowest) map.delete(key)
  else map.set(key, value)
}
