// The types of postgres-versions.mjs, for the tests.

export function postgresVersions(root: string): number[]
export function postgresOfVersion(major: number, root?: string): string | undefined
export function otherPostgres(root: string, major: number): Promise<{ bin: string } | { why: string }>
