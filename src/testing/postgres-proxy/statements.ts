// Follows the messages of a client and groups them into what the server answers together, with the text of each
// statement.

import { type Frame, zeroEnded } from './frames.js'

/** What goes to the server at once: a simple query, or the extended messages up to their Sync or Flush. */
export interface Group {
  readonly bytes: Buffer
  /**
   * The texts that it executes. A simple query is one text, even if it contains several statements. Empty for other
   * messages.
   */
  readonly texts: readonly string[]
  /** Whether the server answers. It does not answer parts of a copy, a password, or the end of the session. */
  readonly answered: boolean
  /** Whether its answer ends with ReadyForQuery. */
  readonly endsReady: boolean
}

// How many names of statements and portals are remembered for a connection; the oldest are dropped first.
const maxNames = 10_000

/** Follows the messages of one client. */
export class StatementReader {
  readonly #prepared = new Map<string, string>()
  readonly #portals = new Map<string, string>()
  #frames: Buffer[] = []
  #texts: string[] = []

  /** Adds a message. Returns the group that it completes, if any. */
  take({ type, bytes }: Frame): Group | undefined {
    this.#frames.push(bytes)
    switch (type) {
      case 'P': // Parse: name, text
        this.#parse(bytes)
        return undefined
      case 'B': // Bind: portal, statement
        this.#bind(bytes)
        return undefined
      case 'E': // Execute: portal
        this.#texts.push(this.#portals.get(zeroEnded(bytes, 5).text) ?? '')
        return undefined
      case 'C': // Close: kind, name
        ;(bytes[5] === 0x53 ? this.#prepared : this.#portals).delete(zeroEnded(bytes, 6).text)
        return undefined
      case 'D': // Describe
        return undefined
      case 'Q':
        this.#texts.push(zeroEnded(bytes, 5).text)
        return this.#group(true, true)
      case 'S': // Sync
      case 'F': // function call
        return this.#group(true, true)
      case 'H': // Flush
        return this.#group(true, false)
      default:
        return this.#group(false, false)
    }
  }

  #group(answered: boolean, endsReady: boolean): Group {
    const group = { bytes: Buffer.concat(this.#frames), texts: this.#texts, answered, endsReady }
    this.#frames = []
    this.#texts = []
    return group
  }

  #parse(bytes: Buffer): void {
    const name = zeroEnded(bytes, 5)
    setBounded(this.#prepared, name.text, zeroEnded(bytes, name.next).text)
  }

  #bind(bytes: Buffer): void {
    const portal = zeroEnded(bytes, 5)
    const statement = zeroEnded(bytes, portal.next)
    setBounded(this.#portals, portal.text, this.#prepared.get(statement.text) ?? '')
  }
}

function setBounded(names: Map<string, string>, name: string, text: string): void {
  names.delete(name)
  names.set(name, text)
  const [oldest] = names.keys()
  if (names.size > maxNames && oldest !== undefined) names.delete(oldest)
}

// Comments, quoted names, strings and dollar quotes: nothing inside them is a statement. Nested block comments are not
// supported.
const quoted =
  /--[^\n]*|\b[eE]'(?:[^'\\]|\\[\s\S]|'')*'|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$([A-Za-z_]\w*)?\$[\s\S]*?\$\1\$/g

/** The statements of a text, without comments and quoted parts. Enough to tell what kind they are. */
export function statementsOf(text: string): string[] {
  const bare = text.replace(quoted, (part) => (part.startsWith('-') || part.startsWith('/') ? ' ' : "''"))
  return bare.split(';').flatMap((statement) => statement.trim() || [])
}

/** Whether a text commits the open transaction, that is, contains COMMIT or END. For the `statement` of a fault. */
export function commits(text: string): boolean {
  return statementsOf(text).some((statement) => /^(commit|end)\b(?!\s+prepared)/i.test(statement))
}
