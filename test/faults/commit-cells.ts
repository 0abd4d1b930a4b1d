// Every cell of the cut matrix: each moment of COMMIT × each action of the proxy × what becomes of the server's side.

import { commits, type FaultActionName, type FaultMoment, type ProxyFault } from '../../src/testing/index.js'
import { until } from '../servers/server-process.js'
import { type Lane, Tried } from './lanes.js'

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

// Of a call of 1 s three quarters are left for COMMIT, so its timer notices a longer delay.
const noticedMs = 850

// A missing action is a type error.
const actions: Record<FaultActionName, readonly Variant[]> = {
  fin: [{ server: 'close' }, { server: 'reset' }, { server: 'keep' }],
  rst: [{ server: 'close' }, { server: 'reset' }, { server: 'keep' }],
  'half-open': [{}],
  'black-hole': [{}],
  delay: [{ delayMs: 30, ambiguous: 'never' }, { delayMs: noticedMs }],
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

/** How an intent of a cell is called, and what is done about it afterwards. */
export interface Played {
  readonly keyed: boolean
  call(tried: Tried, deadline: `${number}s`): Promise<unknown>
  settle(tried: Tried): Promise<void>
}

/** What became of the cell: its last intent, how many COMMITs its fault struck, and whether the runner had to look. */
export interface Struck {
  readonly tried: Tried
  readonly fired: number
  readonly resolved: Lane['resolved']
}

/**
 * Plays a cell with intents of their own, until its fault has struck a COMMIT, and the runner looked where it has to. A
 * busy machine may let a short deadline pass before: the next intent has twice the time.
 */
export async function strike(lane: Lane, cell: Cell, { keyed, call, settle }: Played): Promise<Struck> {
  // Nothing waits for the end of a call whose fault leaves nothing open.
  for (let seconds = cell.ambiguous === 'never' ? 8 : 1; ; seconds *= 2) {
    const tried = new Tried(lane, keyed)
    const delayMs = cell.fault.delayMs === noticedMs ? { delayMs: noticedMs * seconds } : {}
    const armed = lane.proxy.arm({ statement: commits, ...cell.fault, ...delayMs })
    await call(tried, `${seconds}s`)
    // After the whole answer has been passed on, the caller may be told before the fault strikes.
    if (tried.last === 'committed') await until(() => armed.fired.length > 0, 'the fault strikes')
    armed.disarm()
    const fired = armed.fired.filter(({ texts }) => texts.some(commits)).length
    const resolved = [...lane.resolved]
    // No fault is healed before: the next call must settle it while the old transaction may still be open.
    await settle(tried)
    await lane.proxy.heal()
    const isDone = fired > 0 && (cell.ambiguous !== 'always' || resolved.length > 0)
    if (isDone || seconds >= 32) return { tried, fired, resolved }
  }
}

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
