// The rows and columns of the table: for each event, what is looked at, in the order in which it is looked at.

import type { ClaimEvent, LookEvent, MachineEvent, Recovery, SettleEvent } from '../../../src/idempotency/machine.js'
import type { Facets, Features } from './table-features.js'

/** One table: the first row that fits is the record's. */
export interface EventTable {
  readonly name: string
  readonly head: string
  /** Whether other content and another mode are tried as well. */
  readonly faceted: boolean
  readonly columns: readonly (readonly [name: string, event: (features: Features, facets: Facets) => MachineEvent])[]
  readonly rows: readonly (readonly [text: string, fits: (features: Features, facets: Facets) => boolean])[]
}

type Row = EventTable['rows'][number]

/** A lease, the margin, and the receiver's window in all cells, in ms. */
export const [leaseMs, marginMs, windowMs]: readonly [number, number, number] = [30, 5, 500]
const recoveries: readonly (readonly [string, Recovery])[] = [
  ['`rerun`', { kind: 'rerun', windowMs }],
  ['`resolve`', { kind: 'resolve' }],
  ['`hold`', { kind: 'hold' }],
]

function claimOf(recovery: Recovery, { mode }: Features, { sameMode, sameContent }: Facets): ClaimEvent {
  const ofMode = sameMode ? mode : mode === 'leased' ? 'atomic' : 'leased'
  const leased = ofMode === 'leased'
  const event = {
    kind: 'claim',
    mode: ofMode,
    token: 'mine',
    sameContent,
    fingerprint: 'f',
    marginMs,
    input: '{}',
  } as const
  return { ...event, leaseMs: leased ? leaseMs : undefined, recovery: leased ? recovery : undefined }
}

const lookOf = (recovery: Recovery): LookEvent => ({ kind: 'look', token: 'mine', leaseMs, marginMs, recovery })
const outcome = { state: 'succeeded', codec: undefined, value: '1', rememberedMs: 100 } as const
const settleOf = (decision: SettleEvent['decision']): SettleEvent => ({ kind: 'settle', marginMs, decision })
const owner = { token: 'mine', fence: 1 } as const

const finished = ({ state }: Features): boolean => state === 'succeeded' || state === 'failed'
const ours = ({ token }: Features): boolean => token === 'mine'
const enough = ({ receiver }: Features): boolean => receiver === 'long enough'
const leaseLives = ({ due }: Features): boolean => due !== 'past the margin' && due !== 'never'

const first: readonly Row[] = [
  ['nothing is there', ({ state }) => state === 'absent'],
  ['written by a newer version', ({ format }) => format === 3],
]

const claimRows: readonly Row[] = [
  ...first,
  ['finished, its window is over', (features) => finished(features) && features.window === 'over'],
  ['of another mode', (_features, { sameMode }) => !sameMode],
  ['of other content', (_features, { sameContent }) => !sameContent],
  ['finished, its window is open', finished],
  ['atomic, and not finished', ({ mode }) => mode === 'atomic'],
  [
    'claimed by this very claim, the first one',
    (features) => features.state === 'claimed' && ours(features) && features.claims === 1,
  ],
  [
    'claimed by this very claim, after others; receiver’s window long enough',
    (features) => features.state === 'claimed' && ours(features) && enough(features),
  ],
  ['claimed by this very claim, after others; too short', (features) => features.state === 'claimed' && ours(features)],
  ['claimed; lease or margin not over', (features) => features.state === 'claimed' && leaseLives(features)],
  ['claimed without a lease', ({ state, due }) => state === 'claimed' && due === 'never'],
  [
    'claimed, lease and margin over; receiver’s window long enough',
    (features) => features.state === 'claimed' && enough(features),
  ],
  ['claimed, lease and margin over; too short', ({ state }) => state === 'claimed'],
  ['unknown; receiver’s window long enough', enough],
  ['unknown; too short', () => true],
]

const lookRows: readonly Row[] = [
  ...first,
  ['atomic, or finished', (features) => features.mode === 'atomic' || finished(features)],
  [
    'claimed by this very look; receiver’s window long enough',
    (features) => features.state === 'claimed' && ours(features) && enough(features),
  ],
  ['claimed by this very look; too short', (features) => features.state === 'claimed' && ours(features)],
  ['claimed by another one since', ({ state }) => state === 'claimed'],
  ['unknown, due never', ({ due }) => due === 'never'],
  ['unknown, its input kept; receiver’s window long enough', (features) => enough(features) && features.input],
  ['unknown, its input not kept; receiver’s window long enough', enough],
  ['unknown; too short', () => true],
]

const ownerRows: readonly Row[] = [
  ...first,
  ['of another token or fence', (features) => !ours(features) || features.fence === 'other'],
  ['claimed, the first claim', ({ state, claims }) => state === 'claimed' && claims === 1],
  ['claimed, after others', ({ state }) => state === 'claimed'],
  ['succeeded', ({ state }) => state === 'succeeded'],
  ['failed', ({ state }) => state === 'failed'],
  ['unknown (maybe)', ({ because }) => because === 'maybe'],
  ['unknown (earlier-claim)', ({ because }) => because === 'earlier-claim'],
  ['unknown, for another reason', () => true],
]

const settleRows: readonly Row[] = [
  ...first,
  ['succeeded, settled by a person', ({ state, because }) => state === 'succeeded' && because === 'settled'],
  ['failed, settled by a person', ({ state, because }) => state === 'failed' && because === 'settled'],
  ['finished otherwise', finished],
  ['atomic, and not finished', ({ mode }) => mode === 'atomic'],
  ['claimed; lease or margin not over', (features) => features.state === 'claimed' && leaseLives(features)],
  ['claimed, lease and margin over', ({ state, due }) => state === 'claimed' && due !== 'never'],
  ['claimed without a lease', ({ state }) => state === 'claimed'],
  ['unknown', () => true],
]

/** All tables. */
export const eventTables: readonly EventTable[] = [
  {
    name: 'claim',
    head: 'claim: the record is',
    faceted: true,
    columns: recoveries.map(([name, recovery]) => [name, (features, facets) => claimOf(recovery, features, facets)]),
    rows: claimRows,
  },
  {
    name: 'look',
    head: 'look: the record is',
    faceted: false,
    columns: recoveries.map(([name, recovery]) => [name, () => lookOf(recovery)]),
    rows: lookRows,
  },
  {
    name: 'owner',
    head: 'owner: the record is',
    faceted: false,
    columns: [
      ['renew', () => ({ kind: 'renew', ...owner, leaseMs })],
      ['complete: succeeded', () => ({ kind: 'complete', ...owner, ...outcome })],
      ['release: unsent', () => ({ kind: 'release', ...owner, proof: 'unsent' })],
      ['release: asked', () => ({ kind: 'release', ...owner, proof: 'asked' })],
      ['lose: maybe', () => ({ kind: 'lose', ...owner, because: 'maybe', lookInMs: 60 })],
    ],
    rows: ownerRows,
  },
  {
    name: 'settle',
    head: 'settle: the record is',
    faceted: false,
    columns: [
      ['succeeded', () => settleOf(outcome)],
      ['failed', () => settleOf({ ...outcome, state: 'failed' })],
      ['released', () => settleOf({ state: 'released' })],
    ],
    rows: settleRows,
  },
]
