// The checks of conformance cases. They need no test runner.

/** A store failed a conformance case. */
export class ConformanceFailure extends Error {
  override readonly name: string = 'ConformanceFailure'
}

/** Fails the case unless both values are the same, compared as JSON. */
export function same(actual: unknown, wanted: unknown, what: string): void {
  const [is, should] = [show(actual), show(wanted)]
  if (is !== should) throw new ConformanceFailure(`${what}: ${is}, and should be ${should}`)
}

/** Fails the case unless the condition holds. */
export function holds(condition: boolean, what: string): void {
  if (!condition) throw new ConformanceFailure(`${what} does not hold`)
}

/**
 * The error that the work fails with. Fails the case if the work succeeds, or if a code is given and the error has
 * another one.
 */
export async function failing(work: PromiseLike<unknown>, code?: string): Promise<unknown> {
  let value: unknown
  try {
    value = await work
  } catch (error) {
    const actual = (error as { code?: unknown } | undefined)?.code
    if (code !== undefined && actual !== code) {
      throw new ConformanceFailure(`it failed with ${show(actual)}, and should with ${code}`, { cause: error })
    }
    return error
  }
  throw new ConformanceFailure(
    `it ended with ${show(value)}, and should have failed${code === undefined ? '' : ` with ${code}`}`,
  )
}

function show(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? `${part}n` : part)) ?? 'undefined'
}
