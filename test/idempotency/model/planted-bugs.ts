// Bugs that others have had, or that this machine would have without one of its lines: each replaces one part of what
// the model drives.

import {
  changedRecord,
  type Expected,
  isForgotten,
  type RecordChange,
  type StoredRecord,
} from '../../../src/atomicity/index.js'
import {
  type ClaimEvent,
  type Decision,
  decide,
  type MachineEvent,
  type OwnerEvent,
} from '../../../src/idempotency/machine.js'
import { leaseMs, realSubject, type Subject, skewMs, windowMs } from './subject.js'
import { recoveries, type Setting } from './world.js'

/** A bug, and by which violations it may be noticed. */
export interface PlantedBug {
  readonly name: string
  readonly subject: Partial<Subject>
  readonly noticed: RegExp
  /** Where it is looked for; default: everywhere. */
  readonly setting?: Partial<Setting>
}

/** The machine, with one of its decisions replaced. */
function deciding(
  other: (record: StoredRecord, event: MachineEvent, nowMs: number, real: Decision) => Decision,
): Partial<Subject> {
  return {
    decide: (record, event, nowMs) => {
      const real = decide(record, event, nowMs)
      return record === undefined ? real : other(record, event, nowMs, real)
    },
  }
}

const isOwners = (event: MachineEvent): event is OwnerEvent => 'fence' in event
const takeOver = ({ token }: { readonly token: string }): RecordChange => ({
  state: 'claimed',
  token,
  fence: 'next',
  claimed: true,
  dueInMs: leaseMs,
})

/** A claim as of somebody who finds the key free. */
function asIfFree(record: StoredRecord, event: ClaimEvent, nowMs: number): Decision {
  return decide({ ...record, mode: event.mode, state: 'failed', expiresAtMs: nowMs }, event, nowMs)
}

const twice = /twice/
const lost = /an outcome was (lost|changed)/

/** All of them. */
export const plantedBugs: readonly PlantedBug[] = [
  {
    name: 'check-then-act claim: the insert does not ask the unique index',
    subject: { insertOver: true },
    noticed: /whose lease lived|twice|lost|while another holds/,
  },
  {
    name: 'completion without fence: whoever finds the record claimed completes it',
    subject: deciding((record, event, nowMs, real) =>
      isOwners(event) && event.kind === 'complete' && record.state === 'claimed'
        ? decide(record, { ...event, token: record.token ?? '', fence: record.fence ?? 0 }, nowMs)
        : real,
    ),
    noticed: /a stale complete was accepted/,
  },
  {
    name: 'completion without token: the fence alone, which a takeover keeps',
    subject: {
      ...deciding((record, event, nowMs, real) =>
        isOwners(event) && event.kind === 'complete' && record.fence === event.fence
          ? decide(record, { ...event, token: record.token ?? '' }, nowMs)
          : real,
      ),
      fencesAreWatched: false,
      change: (record, change, nowMs) => changedRecord(record, change, nowMs, () => record.fence ?? 0),
    },
    noticed: /a stale complete was accepted/,
  },
  {
    name: 'lease by the client’s clock',
    subject: { decidesBy: 'owner' },
    noticed: /whose lease lived|while another holds|lost to a claim|happened twice/,
  },
  {
    name: 'window counted from the claim',
    subject: {
      change: (record, change, nowMs, nextFence) => {
        const changed = changedRecord(record, change, nowMs, nextFence)
        return change.remembered === undefined
          ? changed
          : { ...changed, expiresAtMs: record.claimedAtMs + change.remembered }
      },
    },
    noticed: lost,
  },
  {
    name: 'release after success: a late failure deletes what another one stored',
    subject: deciding((record, event, _nowMs, real) =>
      event.kind === 'release' && (record.state === 'succeeded' || record.state === 'failed')
        ? { act: 'remove' }
        : real,
    ),
    noticed: /an outcome was changed by a release/,
  },
  {
    name: 'key minted per attempt',
    subject: { keyOf: (token) => token },
    noticed: twice,
  },
  {
    name: 'sweep that runs again without asking',
    subject: deciding((_record, event, _nowMs, real) =>
      event.kind === 'look' && real.act === 'ask'
        ? { act: 'execute', how: 'rerun', change: real.change, sendWithinMs: Number.POSITIVE_INFINITY }
        : real,
    ),
    noticed: twice,
  },
  {
    name: 'takeover without margin, while clocks differ',
    subject: { marginMs: 0 },
    noticed: /whose lease lived|while another holds|twice/,
  },
  {
    name: 'renewal that revives a lost lease',
    subject: deciding((_record, event, _nowMs, real) =>
      event.kind === 'renew' && real.act === 'stale'
        ? { act: 'write', change: { state: 'claimed', token: event.token, dueInMs: event.leaseMs } }
        : real,
    ),
    noticed: /a stale renew was accepted|an outcome was changed by a renew/,
  },
  {
    name: 'replay that extends the window',
    subject: { replayWrites: { state: 'succeeded', remembered: windowMs } },
    noticed: /an outcome was changed by a replay/,
  },
  {
    name: 'purge that drops what is unknown',
    subject: { purges: (record, nowMs) => record.state === 'unknown' || isForgotten(record, nowMs) },
    noticed: /an unknown outcome was dropped/,
  },
  {
    name: 'unknown treated as released',
    subject: deciding((record, event, nowMs, real) =>
      event.kind === 'claim' && record.state === 'unknown' && event.mode === 'leased'
        ? asIfFree(record, event, nowMs)
        : real,
    ),
    noticed: twice,
  },
  {
    name: 'fence that restarts at 1 after a removal',
    subject: { nextFence: (last, record) => (record === undefined ? 1 : last + 1) },
    noticed: /a fence did not grow/,
  },
  {
    name: 'write that depends on the version alone, which restarts at 1 after a removal',
    subject: { isStill: (record: StoredRecord | undefined, over: Expected) => record?.version === over.version },
    noticed: /a stale \w+ was accepted|whose lease lived|lost to a claim|twice/,
  },
  {
    name: 'own takeover, recognised after a lost answer, that runs without asking',
    subject: deciding((_record, _event, _nowMs, real) =>
      real.act === 'own' && real.how === 'ask' ? { ...real, how: 'run' } : real,
    ),
    noticed: twice,
  },
  {
    name: 'release after an earlier claim that may have sent something',
    subject: deciding((_record, event, _nowMs, real) =>
      event.kind === 'release' && real.act === 'write' ? { act: 'remove' } : real,
    ),
    noticed: twice,
  },
  {
    name: 'run again until the receiver’s window is over, without margin',
    subject: deciding((record, event, nowMs, real) =>
      (event.kind === 'claim' || event.kind === 'look') && event.recovery?.kind === 'rerun'
        ? decide(
            record,
            { ...event, recovery: { kind: 'rerun', windowMs: event.recovery.windowMs + event.marginMs } },
            nowMs,
          )
        : real,
    ),
    noticed: twice,
    setting: { recovery: recoveries[0] as Setting['recovery'], modes: ['leased', 'leased'], startsAheadMs: skewMs },
  },
  {
    name: 'run again that goes on sending past the receiver’s window',
    subject: deciding((_record, _event, _nowMs, real) =>
      'sendWithinMs' in real ? { ...real, sendWithinMs: Number.POSITIVE_INFINITY } : real,
    ),
    noticed: twice,
  },
  {
    name: 'run again however long ago the first claim was',
    subject: deciding((record, event, nowMs, real) =>
      event.kind === 'claim' && event.recovery?.kind === 'rerun'
        ? decide({ ...record, firstClaimedAtMs: record.claimedAtMs }, event, nowMs)
        : real,
    ),
    noticed: twice,
  },
  {
    name: 'takeover that keeps the fence',
    subject: deciding((_record, event, _nowMs, real) =>
      real.act === 'ask' && event.kind === 'claim'
        ? { act: 'ask', change: { ...takeOver(event), fence: undefined } as never }
        : real,
    ),
    noticed: /a fence did not grow/,
  },
  {
    name: 'settlement of a claim whose lease lives',
    subject: deciding((record, event, nowMs, real) =>
      event.kind === 'settle' && record.state === 'claimed' && record.mode === 'leased'
        ? decide({ ...record, dueAtMs: undefined }, event, nowMs)
        : real,
    ),
    noticed: /a person took a key whose lease lived/,
  },
  {
    name: 'unknown that nobody can settle',
    subject: deciding((_record, event, _nowMs, real) =>
      event.kind === 'settle' && real.act !== 'refuse' ? { act: 'refuse', because: 'in-flight' } : real,
    ),
    noticed: /cannot be settled/,
  },
  {
    name: 'claim that never ends: a crash leaves the key in flight for ever',
    subject: deciding((record, event, _nowMs, real) =>
      event.kind === 'claim' && record.state === 'claimed' && real.act !== 'own'
        ? { act: 'refuse', because: 'in-flight' }
        : real,
    ),
    noticed: /nobody can go on: in-flight/,
  },
]

/** What the model drives with a bug in it. */
export function withBug(bug: PlantedBug): Subject {
  return { ...realSubject, ...bug.subject }
}
