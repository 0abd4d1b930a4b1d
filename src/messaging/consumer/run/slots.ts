// How many messages are handled at a time, and the turns of those that run alone. First come, first served: one that
// needs all slots is not passed by those that need one.

/** Slots for work. */
export class Slots {
  readonly #all: number
  readonly #waiting: { readonly count: number; readonly begin: () => void }[] = []
  #free: number

  constructor(all: number) {
    this.#all = all
    this.#free = all
  }

  /** How many are free for whoever comes now. */
  get free(): number {
    return this.#waiting.length > 0 ? 0 : this.#free
  }

  get isIdle(): boolean {
    return this.#free === this.#all
  }

  /** Runs work in one slot, or with all of them to itself. */
  async within<Result>(alone: boolean, work: () => Promise<Result>): Promise<Result> {
    const count = alone ? this.#all : 1
    await this.#take(count)
    try {
      return await work()
    } finally {
      this.#free += count
      this.#serve()
    }
  }

  #take(count: number): Promise<void> | undefined {
    if (this.#waiting.length === 0 && this.#free >= count) {
      this.#free -= count
      return undefined
    }
    return new Promise((begin) => {
      this.#waiting.push({ count, begin })
    })
  }

  #serve(): void {
    for (let next = this.#waiting[0]; next !== undefined && next.count <= this.#free; next = this.#waiting[0]) {
      this.#waiting.shift()
      this.#free -= next.count
      next.begin()
    }
  }
}
