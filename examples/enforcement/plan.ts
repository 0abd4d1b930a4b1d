// The two seconds that the caller waits, and what may use how much of them.

/** How long a caller waits for an answer, its own repeats included, in ms. */
export const callerMs = 2_000

/** What of it goes where, in ms: the options of the route, and what is left. */
export const plan = planOf({ wayBackMs: 50, poolMs: 200, attemptMs: 400 })

/** The most whole transactions for one request. */
export const mostAttempts = 4

/** One wait for a lock, in ms: a part of the attempt. It ends two that wait for each other. */
export const lockMs = 150

/** The longest wait between two of them, in ms. */
export const longestWaitMs = 100

interface Parts {
  readonly wayBackMs: number
  readonly poolMs: number
  readonly attemptMs: number
}

// Reprise keeps a quarter of what the service has, to find out what became of a COMMIT whose answer was lost.
function planOf(parts: Parts): Parts & { readonly reserveMs: number; readonly retryMs: number } {
  const reserveMs = Math.ceil((callerMs - parts.wayBackMs) / 4)
  const retryMs = callerMs - parts.wayBackMs - parts.poolMs - parts.attemptMs - reserveMs
  return { ...parts, reserveMs, retryMs }
}

/** The plan as a table for people: all parts together are what the caller waits. */
export function planTable(): string {
  const { wayBackMs, poolMs, attemptMs, retryMs, reserveMs } = plan
  const rows: readonly (readonly [string, number, string])[] = [
    ['pool', poolMs, 'the wait for a connection, or for a turn on the file'],
    ['attempt', attemptMs, `one transaction, ${lockMs} ms of it at most for one lock`],
    ['retry', retryMs, `up to ${mostAttempts - 1} more of them, up to ${longestWaitMs} ms apart`],
    ['reserve', reserveMs, 'finding out what became of a COMMIT whose answer was lost'],
    ['way back', wayBackMs, 'the answer on its way to the caller'],
    ['caller', callerMs, 'all of it'],
  ]
  return table(['part', 'ms', 'for'], rows)
}

/** Rows of text and numbers below their names; numbers stand to the right. */
export function table(names: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const widths = names.map((name, column) => Math.max(name.length, ...rows.map((row) => String(row[column]).length)))
  const isNumber = names.map((_, column) => rows.every((row) => typeof row[column] === 'number'))
  const line = (cells: readonly (string | number)[]): string =>
    cells
      .map((cell, column) => {
        const width = widths[column] as number
        return isNumber[column] ? String(cell).padStart(width) : String(cell).padEnd(width)
      })
      .join('  ')
      .trimEnd()
  return [line(names), ...rows.map(line)].join('\n')
}
