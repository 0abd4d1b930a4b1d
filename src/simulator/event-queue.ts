// What happens next, in virtual time: a binary heap on typed arrays. Events of the same instant keep their order of
// entry, so that a run depends on its seed alone.

/** Events of virtual time, each a kind and the number of whom it concerns, both whole numbers from 0. */
export class EventQueue {
  #times = new Float64Array(1024)
  #orders = new Float64Array(1024)
  #kinds = new Uint8Array(1024)
  #subjects = new Int32Array(1024)
  #size = 0
  #entered = 0

  /** When the event that was taken last happens, in ms. */
  timeMs = 0
  /** What kind of event it is, 0 to 255. */
  kind = 0
  /** Whom it concerns. */
  subject = 0

  /** How many events are waiting. */
  get size(): number {
    return this.#size
  }

  /** When the next event happens, in ms; Infinity if there is none. */
  nextMs(): number {
    return this.#size === 0 ? Number.POSITIVE_INFINITY : (this.#times[0] as number)
  }

  /** Enters an event. */
  add(timeMs: number, kind: number, subject: number): void {
    if (this.#size === this.#times.length) this.#grow()
    let place = this.#size
    this.#size += 1
    const order = this.#entered
    this.#entered += 1
    while (place > 0) {
      const parent = (place - 1) >> 1
      // What enters later never goes before its equals, so a tie needs no look at the order here.
      if ((this.#times[parent] as number) <= timeMs) break
      this.#move(parent, place)
      place = parent
    }
    this.#put(place, timeMs, order, kind, subject)
  }

  /** Takes the next event into {@link timeMs}, {@link kind} and {@link subject}; false if there is none. */
  take(): boolean {
    if (this.#size === 0) return false
    this.timeMs = this.#times[0] as number
    this.kind = this.#kinds[0] as number
    this.subject = this.#subjects[0] as number
    this.#size -= 1
    if (this.#size > 0) this.#sink(this.#size)
    return true
  }

  // Puts the event at `last` where the first one was, and lets it sink to its place.
  #sink(last: number): void {
    const timeMs = this.#times[last] as number
    const order = this.#orders[last] as number
    const kind = this.#kinds[last] as number
    const subject = this.#subjects[last] as number
    let place = 0
    for (let child = 1; child < last; child = 2 * place + 1) {
      if (child + 1 < last && this.#precedes(child + 1, this.#times[child] as number, this.#orders[child] as number)) {
        child += 1
      }
      if (!this.#precedes(child, timeMs, order)) break
      this.#move(child, place)
      place = child
    }
    this.#put(place, timeMs, order, kind, subject)
  }

  #precedes(place: number, timeMs: number, order: number): boolean {
    const own = this.#times[place] as number
    return own < timeMs || (own === timeMs && (this.#orders[place] as number) < order)
  }

  #move(from: number, to: number): void {
    this.#put(
      to,
      this.#times[from] as number,
      this.#orders[from] as number,
      this.#kinds[from] as number,
      this.#subjects[from] as number,
    )
  }

  #put(place: number, timeMs: number, order: number, kind: number, subject: number): void {
    this.#times[place] = timeMs
    this.#orders[place] = order
    this.#kinds[place] = kind
    this.#subjects[place] = subject
  }

  #grow(): void {
    const length = 2 * this.#times.length
    const times = new Float64Array(length)
    const orders = new Float64Array(length)
    const kinds = new Uint8Array(length)
    const subjects = new Int32Array(length)
    times.set(this.#times)
    orders.set(this.#orders)
    kinds.set(this.#kinds)
    subjects.set(this.#subjects)
    this.#times = times
    this.#orders = orders
    this.#kinds = kinds
    this.#subjects = subjects
  }
}
