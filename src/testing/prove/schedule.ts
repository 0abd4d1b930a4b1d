// The schedules of a proof as data: what happens to one intent, and in which order. Made from what an undisturbed call
// was seen to reach, so that no fault is armed where nothing passes.

import { type Random, seededRandom } from '../../kernel/index.js'
import { commits, statementsOf } from '../postgres-proxy/statements.js'

/** A fault point, and which of its visits. */
export interface Visit {
  readonly point: string
  readonly nth: number
}

/** What happens to one intent. After each of them it is called until it is answered, and once more. */
export type Schedule =
  | { readonly kind: 'again'; readonly name: string; readonly calls: number }
  | { readonly kind: 'together'; readonly name: string; readonly calls: number }
  | { readonly kind: 'throw' | 'stop' | 'kill'; readonly name: string; readonly at: Visit }
  | { readonly kind: 'cut'; readonly name: string; readonly statement: number; readonly moment: CutMoment }
  | { readonly kind: 'round'; readonly name: string; readonly calls: number; readonly faults: readonly RoundFault[] }

/** When a connection is cut: before the statement arrives, before its answer does, or so that it arrives late. */
export type CutMoment = 'before-forward' | 'before-answer' | 'late'

/** A fault of a random round: an error at a visit, or a pause of some turns of the event loop. */
export interface RoundFault {
  readonly at: Visit
  readonly turns: number | 'throw'
}

// More visits of one point than these are repetitions of the same moment: heartbeats, polls.
const maxVisits = 5
// More statements than these are a batch job, of which each statement need not be cut.
const maxStatements = 40

/** The visits that an undisturbed call made, each once, in order. */
export function visitsOf(reached: readonly string[]): readonly Visit[] {
  const counts = new Map<string, number>()
  return reached.flatMap((point) => {
    const nth = (counts.get(point) ?? 0) + 1
    counts.set(point, nth)
    return nth > maxVisits ? [] : [{ point, nth }]
  })
}

/** The schedules without a fault: a repeat after the answer, and duplicates at once. */
export function duplicateSchedules(duplicates: number): readonly Schedule[] {
  return [
    { kind: 'again', name: 'called again after its answer', calls: 2 },
    { kind: 'together', name: `${duplicates} calls at once`, calls: duplicates },
  ]
}

/** One schedule for each visit. */
export function visitSchedules(kind: 'throw' | 'stop' | 'kill', visits: readonly Visit[]): readonly Schedule[] {
  const words = { throw: 'an error at', stop: 'duplicates while it stands at', kill: 'killed at' }
  return visits.map((at) => ({ kind, name: `${words[kind]} ${nameOf(at)}`, at }))
}

/** Three schedules for a COMMIT, two for every other statement that a call sent. */
export function cutSchedules(texts: readonly string[]): readonly Schedule[] {
  return texts.slice(0, maxStatements).flatMap((text, index): Schedule[] => {
    const statement = index + 1
    const first = (statementsOf(text)[0] ?? 'a statement').split(/\s+/).slice(0, 3).join(' ')
    const schedule = (moment: CutMoment, when: string): Schedule => ({
      kind: 'cut',
      name: `cut at statement ${statement} (${first}), ${when}`,
      statement,
      moment,
    })
    return [
      schedule('before-forward', 'before it arrives'),
      schedule('before-answer', 'before its answer'),
      ...(commits(text) ? [schedule('late', 'and it arrives late')] : []),
    ]
  })
}

/** Random rounds: several calls at once, with up to three faults. A round depends on the seed and its number alone. */
export function roundSchedules(
  seed: number | string,
  rounds: number,
  duplicates: number,
  visits: readonly Visit[],
): readonly Schedule[] {
  return Array.from({ length: rounds }, (_, index): Schedule => {
    const name = `round ${index + 1}`
    const random = seededRandom(`${seed} ${name}`)
    const faults =
      visits.length === 0 ? [] : Array.from({ length: 1 + below(random, 3) }, () => drawFault(random, visits))
    return { kind: 'round', name, calls: 1 + below(random, duplicates), faults }
  })
}

function drawFault(random: Random, visits: readonly Visit[]): RoundFault {
  const { point } = visits[below(random, visits.length)] as Visit
  // Duplicates visit the same points: later visits than those of one call may be met too.
  const at = { point, nth: 1 + below(random, 2) }
  return { at, turns: random.next() < 0.5 ? 'throw' : 1 + below(random, 20) }
}

function below(random: Random, limit: number): number {
  return Math.floor(random.next() * limit)
}

function nameOf({ point, nth }: Visit): string {
  return nth === 1 ? point : `${point}, visit ${nth}`
}
