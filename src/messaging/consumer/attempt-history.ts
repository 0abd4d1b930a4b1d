// What happened to a message so far, as it is stored with its lane and shown with its dead letter: a JSON array, the
// oldest first.

import { keepableText } from '../../kernel/index.js'

/** One thing that happened to a message. */
export interface AttemptNote {
  /** When, in ms since 1970, by the clock of the process. */
  readonly atMs: number
  /**
   * `failed`: its handler did. `lost`: the store was lost while the handler was at work. `suspected`: a process that
   * had the message ended without a word, and the message may be the reason.
   */
  readonly what: 'failed' | 'lost' | 'suspected'
  /** A stable word for the cause. */
  readonly code: string
  /** What the error said. */
  readonly reason: string
}

const mostNotes = 20
const mostReason = 300

/** The notes in a stored history. What is not ours, or cannot be read, counts as none. */
export function notesIn(history: string): readonly AttemptNote[] {
  if (history === '') return []
  try {
    const notes: unknown = JSON.parse(history)
    return Array.isArray(notes) ? notes.filter((note) => typeof Object(note).what === 'string') : []
  } catch {
    return []
  }
}

/** The history with one note more. The first note is kept, and the last ones: at most 20. */
export function withNote(history: string, note: AttemptNote): string {
  const notes = [...notesIn(history), { ...note, reason: keepableText(note.reason, mostReason) }]
  if (notes.length > mostNotes) notes.splice(1, notes.length - mostNotes)
  return JSON.stringify(notes)
}

/** Whether the history has a note of that kind. */
export function hasNote(history: string, what: AttemptNote['what']): boolean {
  return notesIn(history).some((note) => note.what === what)
}
