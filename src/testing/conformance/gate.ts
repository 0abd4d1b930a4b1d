// A gate that opens when enough have arrived, to force a race.

/** A point where several wait until enough have arrived. */
export interface Gate {
  readonly arrived: number
  /** Arrives, and waits until the gate opens. */
  arrive(): Promise<void>
  /** Waits until that many have arrived. */
  waiting(count: number): Promise<void>
  /** Opens the gate for everybody, however few have arrived. */
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
