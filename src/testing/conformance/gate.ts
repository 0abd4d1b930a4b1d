// A gate that opens when enough have arrived, so that a race is one.

/** A gate. */
export interface Gate {
  /** How many have arrived. */
  readonly arrived: number
  /** Arrives, and waits until the gate opens. */
  arrive(): Promise<void>
  /** Waits until that many have arrived. */
  waiting(count: number): Promise<void>
  /** Opens it for all who wait and all who come, however few have arrived. */
  open(): void
}

/** A gate that opens when `size` have arrived. */
export function gate(size: number): Gate {
  const waits: { readonly count: number; readonly go: () => void }[] = []
  let arrived = 0
  let forced = false
  const until = (count: number): Promise<void> =>
    new Promise((go) => {
      if (forced || arrived >= count) go()
      else waits.push({ count, go })
    })
  return {
    get arrived() {
      return arrived
    },
    arrive() {
      arrived++
      for (const wait of waits) if (arrived >= wait.count) wait.go()
      return until(size)
    },
    waiting: until,
    open() {
      forced = true
      for (const wait of waits) wait.go()
    },
  }
}
