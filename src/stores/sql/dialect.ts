// What differs between the SQL of two engines, as far as shared statements care.

/** The two kinds of SQL spoken here; they differ in quoting, comments and placeholders. */
export type SqlDialect = 'postgres' | 'sqlite'

/** The placeholder of the parameter at a position that counts from 1. */
export function placeholder(dialect: SqlDialect, position: number): string {
  return dialect === 'postgres' ? `$${position}` : '?'
}
