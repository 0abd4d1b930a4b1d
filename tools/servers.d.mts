// The types of servers.mjs, for the tests.

export function findChromium(): string | undefined
export function findPgbouncer(): string | undefined
export function findPostgres(): string | undefined
export function findProgram(name: string): string | undefined
export function needServers(args: readonly string[]): boolean
export interface Needed {
  readonly what: string
  readonly package: string
  find(): string | undefined
}

export function serversNamed(names: readonly string[]): readonly Needed[]
export function missingServers(root: string, wanted?: readonly Needed[]): Promise<{ what: string; why: string }[]>
export function ensureServers(root: string, wanted?: readonly Needed[]): Promise<void>
