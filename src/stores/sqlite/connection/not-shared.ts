// What does not share a COMMIT: work that took longer than a turn of the event loop, or that rolled everything back. It
// is remembered by its name, so that others do not wait for it, and it is not begun in vain, a second time.

/** More are not remembered: those that came first are forgotten first. */
const mostRemembered = 1_000
/** As much of a function's text as tells it from others. */
const tellingLength = 500

/** What runs in a transaction: an operation by its name, a body by its text. */
export type Work = string | ((...values: never[]) => unknown)

/** A bounded memory of work that does not share. */
export class NotShared {
  readonly #names = new Set<string>()

  /** Whether it is remembered. */
  has(work: Work): boolean {
    return this.#names.size > 0 && this.#names.has(nameOf(work))
  }

  /** Remembers it, until the process ends or many others came after it. */
  add(work: Work): void {
    const name = nameOf(work)
    if (this.#names.has(name)) return
    const [first] = this.#names
    if (this.#names.size >= mostRemembered && first !== undefined) this.#names.delete(first)
    this.#names.add(name)
  }
}

// A body is a new function in each call, with the same text.
function nameOf(work: Work): string {
  if (typeof work === 'string') return `operation ${work}`
  const text = String(work)
  return `body ${text.length} ${text.slice(0, tellingLength)}`
}
