// What the service is told by its environment: read once, and refused in one line where it makes no sense.

/** Something in the environment that cannot be worked with; its message is the one line that is shown. */
export class SettingsError extends Error {}

/** The settings of the service. */
export interface Settings {
  /** The port to listen on; 0 is any free one. */
  readonly port: number
  /** The address to listen on. */
  readonly host: string
  /** Where payments and keys are kept, together: that is the point. */
  readonly database:
    | { readonly engine: 'sqlite'; readonly file: string }
    | { readonly engine: 'postgres'; readonly url: string }
  /** Whether trouble can be asked for. */
  readonly drill: boolean
}

/** Reads the settings. */
export function settingsFrom(environment: NodeJS.ProcessEnv): Settings {
  const host = given(environment['HOST']) ?? '127.0.0.1'
  return {
    port: portFrom(given(environment['PORT']) ?? '4700'),
    host,
    database: databaseFrom(given(environment['DATABASE_URL']) ?? 'sqlite:data/reprise.db'),
    drill: drillFrom(given(environment['REPRISE_DRILL']), host),
  }
}

function given(value: string | undefined): string | undefined {
  return value === undefined || value.trim() === '' ? undefined : value.trim()
}

function portFrom(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (port <= 65_535) return port
  throw new SettingsError('PORT is a whole number from 0 to 65535; 0 is any free port.')
}

// The address is not repeated in a refusal: it may hold a password.
function databaseFrom(text: string): Settings['database'] {
  const file = /^sqlite:(?:\/\/)?(?<file>.+)$/s.exec(text)?.groups?.['file']
  if (file !== undefined) return { engine: 'sqlite', file }
  if (/^postgres(ql)?:\/\//.test(text) && URL.canParse(text)) return { engine: 'postgres', url: text }
  throw new SettingsError('DATABASE_URL is neither sqlite:FILE nor postgres://user@host:port/database.')
}

function drillFrom(text: string | undefined, host: string): boolean {
  if (text === undefined) return isLoopback(host)
  if (/^(1|on|true)$/i.test(text)) return true
  if (/^(0|off|false)$/i.test(text)) return false
  throw new SettingsError('REPRISE_DRILL is 1 (on) or 0 (off).')
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

/** Where the service is reached, or undefined where it listens on every address and cannot know. */
export function originOf(host: string, port: number): string | undefined {
  if (host === '0.0.0.0' || host === '::') return undefined
  return addressOf(host, port)
}

/** The address of the service as it is shown: one of IPv6 stands in brackets (RFC 3986, 3.2.2). */
export function addressOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
