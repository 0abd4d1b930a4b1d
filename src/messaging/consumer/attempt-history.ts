// What happened to a message so far, as it is stored with its lane and shown with its dead letter: a JSON array, the
// oldest first.

import { keepableText } from '../../kernel/index.js'

/** One thing that happened to a message. */
export interface AttemptNote {
  /** When, in ms since 1970, by the clock of the process. */
  readonly atMs: number
  /**
   * `failed`: its handler did. `lost`: the store was lost while the handler was at work. `suspected`: a process that
   * had the message ended without a word, and the message may be the reason. `alone`: a process began it with nothing
   * beside it, and did not say how it ended.
   */
  readonly what: 'failed' | 'lost' | 'suspected' | 'alone'
  /** A stable word for the cause. */
  readonly code: string
  /** What the error said. */
  readonly reason: string
  /** Of `alone`: how often. */
  readonly times?: number
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

/** The history with one note more. At most 20: of those that failed, the first is kept, and the last ones. */
export function withNote(history: string, note: AttemptNote): string {
  return written([...notesIn(history), note])
}

/** The history with a note that there is one of: it takes the place of the one before. */
export function withCount(history: string, note: AttemptNote & Required<Pick<AttemptNote, 'times'>>): string {
  return written([...notesIn(history).filter(({ what }) => what !== note.what), note])
}

function written(notes: readonly AttemptNote[]): string {
  const kept = [...notes]
  while (kept.length > mostNotes) {
    // What the rules ask for later is one note of each other kind.
    const [, second = 0] = kept.flatMap(({ what }, index) => (what === 'failed' ? [index] : []))
    kept.splice(second, 1)
  }
  return JSON.stringify(kept.map((note) => ({ ...note, reason: keepableText(String(note.reason), mostReason) })))
}

/** Whether the history has a note of that kind. */
export function hasNote(history: string, what: AttemptNote['what']): boolean {
  return notesIn(history).some((note) => note.what === what)
}
