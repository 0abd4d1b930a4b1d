// A sliding window of time in ten steps, as a list of whole numbers and pure functions over it.
//
// Each step is a pair, calls and marks (failures, or repeats), the newest pair last. A list that is shorter than the
// window has nothing in the steps before it.

const steps = 10

/** The most numbers a window holds. */
export const windowLength: number = 2 * steps

/** The number of the step that `nowMs` lies in. */
export function stepAt(nowMs: number, windowMs: number): number {
  return Math.floor((nowMs * steps) / windowMs)
}

/** The window some steps later. However long the idle time was, all that is older than the window is gone. */
export function aged(pairs: readonly number[], passed: number): readonly number[] {
  const nothing = new Array<number>(Math.min(2 * passed, windowLength)).fill(0)
  return [...pairs, ...nothing].slice(-windowLength)
}

/** The window with more calls and marks in its newest step. */
export function added(pairs: readonly number[], calls: number, marks: number): readonly number[] {
  const [latestCalls = 0, latestMarks = 0] = pairs.slice(-2)
  return [...pairs.slice(0, -2), latestCalls + calls, latestMarks + marks]
}

/** The sum of all calls (0) or of all marks (1). */
export function total(pairs: readonly number[], member: 0 | 1): number {
  let sum = 0
  for (let index: number = member; index < pairs.length; index += 2) sum += pairs[index] as number
  return sum
}
