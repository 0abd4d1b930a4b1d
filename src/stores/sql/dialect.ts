// What differs between the SQL of two engines, as far as shared statements care.

/** The two kinds of SQL spoken here; they differ in quoting, comments and placeholders. */
export type SqlDialect = 'postgres' | 'sqlite'

/**
 * The time of the store in ms since 1970, as an SQL expression: the server's clock at the statement and not at the transaction's begin, or for SQLite the clock of the
 * machine.
 */
export const storeNowMs: Readonly<Record<SqlDialect, string>> = {
  postgres: '(extract(epoch FROM clock_timestamp()) * 1000)::bigint',
  sqlite: "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)",
}

/** The placeholder of the parameter at a position that counts from 1. */
export function placeholder(dialect: SqlDialect, position: number): string {
  return dialect === 'postgres' ? `$${position}` : '?'
}
