// What conformance cases say when a store does otherwise. No test runner is needed to run them.

/** A store failed a conformance case. */
export class ConformanceFailure extends Error {
  override readonly name: string = 'ConformanceFailure'
}

/** Fails the case unless both are the same, compared as JSON. */
export function same(actual: unknown, wanted: unknown, what: string): void {
  const [is, should] = [show(actual), show(wanted)]
  if (is !== should) throw new ConformanceFailure(`${what}: ${is}, and should be ${should}`)
}

/** Fails the case unless the condition holds. */
export function holds(condition: boolean, what: string): void {
  if (!condition) throw new ConformanceFailure(`${what} does not hold`)
}

/** The error that work ends with; fails the case when it ends well. With a code: fails it unless the error has that code. */
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
