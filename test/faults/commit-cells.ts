// Every cell of the cut matrix: each moment of COMMIT × each action of the proxy × what becomes of the server's side.

import type { FaultActionName, FaultMoment, ProxyFault } from '../../src/testing/index.js'

/** One cell. */
export interface Cell {
  readonly name: string
  readonly fault: Pick<ProxyFault, 'at' | 'action' | 'server' | 'delayMs'>
  /**
   * Whether the runner must resolve, because it cannot know; `maybe`: what was passed on races with the end of the
   * connection.
   */
  readonly ambiguous: 'always' | 'never' | 'maybe'
}

/** A cell that the proxy refuses. */
export interface RefusedCell {
  readonly name: string
  readonly fault: Pick<ProxyFault, 'at' | 'action'>
}

const moments: Record<FaultMoment, Cell['ambiguous']> = {
  'before-forward': 'always',
  'after-forward': 'always',
  'before-answer': 'always',
  'between-answers': 'always',
  'after-answers': 'maybe',
}

type Variant = Pick<ProxyFault, 'server' | 'delayMs'> & { readonly ambiguous?: Cell['ambiguous'] }

/** The longest call of the matrix. Three quarters of it are left for COMMIT, so its timer notices a longer delay. */
export const callLimit = '1s'

// A missing action is a type error.
const actions: Record<FaultActionName, readonly Variant[]> = {
  fin: [{ server: 'close' }, { server: 'reset' }, { server: 'keep' }],
  rst: [{ server: 'close' }, { server: 'reset' }, { server: 'keep' }],
  'half-open': [{}],
  'black-hole': [{}],
  delay: [{ delayMs: 30, ambiguous: 'never' }, { delayMs: 850 }],
  late: [{ delayMs: 20 }, { delayMs: 400 }],
}

/** Why a cell is refused. */
export const lateOnlyBefore = 'only what has not been forwarded can be delivered late'

function cellOf(at: FaultMoment, action: FaultActionName, variant: Variant): Cell {
  const { server, delayMs } = variant
  const more = server === undefined ? (delayMs === undefined ? '' : ` ${delayMs} ms`) : `, server ${server}`
  const fault = {
    at,
    action,
    ...(server === undefined ? {} : { server }),
    ...(delayMs === undefined ? {} : { delayMs }),
  }
  // What comes after the whole answer does not touch this COMMIT.
  const spared = at === 'after-answers' && action !== 'rst'
  return { name: `${at} ${action}${more}`, fault, ambiguous: spared ? 'never' : (variant.ambiguous ?? moments[at]) }
}

const names = Object.keys(moments) as FaultMoment[]
const everyAction = Object.entries(actions) as [FaultActionName, readonly Variant[]][]

/** All cells that can be run. */
export const cells: readonly Cell[] = names.flatMap((at) =>
  everyAction
    .filter(([action]) => action !== 'late' || at === 'before-forward')
    .flatMap(([action, variants]) => variants.map((variant) => cellOf(at, action, variant))),
)

/** All cells that cannot. */
export const refusedCells: readonly RefusedCell[] = names
  .filter((at) => at !== 'before-forward')
  .map((at) => ({ name: `${at} late`, fault: { at, action: 'late' } }))
