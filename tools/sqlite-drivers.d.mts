// The types of sqlite-drivers.mjs, for the tests.

export function ensureSqliteDrivers(root: string): Promise<void>
export function findSqliteDrivers(root: string): { node: string; folder: string } | { why: string }
