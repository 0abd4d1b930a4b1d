// Statements on the wire: what a client sends, grouped into what the server answers as one, with the text of each statement.

import { type Frame, zeroEnded } from './frames.js'

/** What goes to the server at once: a simple query, or the extended messages up to their Sync or Flush. */
export interface Group {
  /** All of its messages, in order. */
  readonly bytes: Buffer
  /** The texts that it executes. A simple query is one text, also where it holds several statements. Empty for other messages. */
  readonly texts: readonly string[]
  /** Whether the server answers; it does not answer parts of a copy, a password, or the end. */
  readonly answered: boolean
  /** Whether its answer ends with ReadyForQuery. */
  readonly endsReady: boolean
}

// Names of statements and portals that a connection may have at once; the oldest are forgotten first.
const maxNames = 10_000

/** Follows the messages of one client. */
export class StatementReader {
  readonly #prepared = new Map<string, string>()
  readonly #portals = new Map<string, string>()
  #frames: Buffer[] = []
  #texts: string[] = []

  /** Adds a message; answers the group that it completes. */
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
    remember(this.#prepared, name.text, zeroEnded(bytes, name.next).text)
  }

  #bind(bytes: Buffer): void {
    const portal = zeroEnded(bytes, 5)
    const statement = zeroEnded(bytes, portal.next)
    remember(this.#portals, portal.text, this.#prepared.get(statement.text) ?? '')
  }
}

function remember(names: Map<string, string>, name: string, text: string): void {
  names.delete(name)
  names.set(name, text)
  const [oldest] = names.keys()
  if (names.size > maxNames && oldest !== undefined) names.delete(oldest)
}

// Comments, quoted names and texts, dollar quotes: nothing in them is a statement. Block comments are taken without nesting.
const quoted =
  /--[^\n]*|\b[eE]'(?:[^'\\]|\\[\s\S]|'')*'|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$([A-Za-z_]\w*)?\$[\s\S]*?\$\1\$/g

/** The statements of a text, without their comments and quoted parts: enough to tell their kinds. */
export function statementsOf(text: string): string[] {
  const bare = text.replace(quoted, (part) => (part.startsWith('-') || part.startsWith('/') ? ' ' : "''"))
  return bare.split(';').flatMap((statement) => statement.trim() || [])
}

/** Whether a text commits the open transaction: COMMIT or END is one of its statements. For the `statement` of a fault. */
export function commits(text: string): boolean {
  return statementsOf(text).some((statement) => /^(commit|end)\b(?!\s+prepared)/i.test(statement))
}
