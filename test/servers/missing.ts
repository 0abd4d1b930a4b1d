// A server that this machine does not have. `npm test` finds that out before and says it in REPRISE_MISSING; what needs
// the server is then skipped, with the reason.

/** What is missing, and why: JSON of an object, from `npm test`. */
const missing: Readonly<Record<string, string>> = JSON.parse(process.env['REPRISE_MISSING'] ?? '{}')

/** Thrown by whatever starts or uses a server that is missing. The runner below skips the test that met it. */
export class MissingServer extends Error {
  override readonly name = 'MissingServer'

  constructor(what: string) {
    super(`${what}: ${missing[what] ?? 'it was not found; npm test installs it, or says why it cannot'}`)
  }
}

/** Throws when a server is missing. */
export function demandServer(what: 'PostgreSQL' | 'PgBouncer' | 'strace' | 'Chromium'): void {
  if (what in missing) throw new MissingServer(what)
}

/** The address of the shared PostgreSQL where there is none: `.invalid` leads nowhere, on every machine. */
export const noPostgresUrl = 'postgres://missing.invalid/'
