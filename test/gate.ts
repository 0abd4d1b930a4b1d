// A promise that is opened from outside, for work that goes on when a test says so.

/** A gate. */
export interface Gate<Value = void> {
  readonly opened: Promise<Value>
  readonly open: (value: Value) => void
  readonly shut: (error: unknown) => void
}

/** A gate that is closed. Whoever waits behind it is the one to be told that it was shut. */
export function gate<Value = void>(): Gate<Value> {
  let open: (value: Value) => void = () => undefined
  let shut: (error: unknown) => void = () => undefined
  const opened = new Promise<Value>((resolve, reject) => {
    open = resolve
    shut = reject
  })
  opened.catch(() => undefined)
  return { opened, open, shut }
}
