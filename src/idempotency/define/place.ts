// Where the operations of a domain live: its records, its time, and what all of its operations share in this process.

import type { Engine, Manifest, Records, TransactionControls } from '../../atomicity/index.js'
import {
  type Clock,
  type Duration,
  durationMs,
  type Random,
  RepriseError,
  systemClock,
  systemRandom,
  uuidv4,
} from '../../kernel/index.js'
import type { TransactionDefaults } from '../../transaction/index.js'
import { FinishedNames } from '../in-process/finished.js'
import { InProcessQueue } from '../in-process/queue.js'
import type { StoredOutcome } from '../values.js'
import { Registry } from './registry.js'

/** What those who wait for a leader are told: the outcome that is stored, and what it is bound to. */
export interface Told extends StoredOutcome {
  /** The fingerprint in the record. */
  readonly fingerprint: string | undefined
}

/** What the operations of a domain share. */
export interface Place {
  /** The domain's name. */
  readonly domain: string
  /** What its store can do. */
  readonly manifest: Manifest
  /** Its records. */
  readonly records: Records
  /** Time. */
  readonly clock: Clock
  /** Chance. */
  readonly random: Random
  /** How long a call takes at most by default. */
  readonly deadline: Duration
  /**
   * A name for an atomic claim: one random part for all, and a number. Such a claim commits with its outcome and cannot be stolen, so that its name only has to tell our
   * own outcome from others' after a lost answer; random bytes for each would be a sixth of what a replay costs.
   */
  nextToken(): string
  /** Its operations. */
  readonly registry: Registry
  /** Duplicates that wait. */
  readonly queue: InProcessQueue<Told>
  /** Keys that were seen to be finished. */
  readonly finished: FinishedNames
}

const places = new WeakMap<Records, Place>()

/** The place of a store. Refuses one that keeps no records with CAPABILITY_UNSUPPORTED. */
export function placeOf<Handle extends TransactionControls>(
  engine: Engine<Handle>,
  defaults: TransactionDefaults,
): Place {
  const { name, manifest, records } = engine
  if (records === undefined) {
    throw new RepriseError('CAPABILITY_UNSUPPORTED', 'The store keeps no records of operations.', {
      details: { option: 'records', engine: manifest.engine },
    })
  }
  const known = places.get(records)
  if (known !== undefined) return known
  const { clock = systemClock, random = systemRandom, deadline = 10_000 } = defaults
  const root = uuidv4(random)
  let claims = 0
  const place: Place = {
    domain: name,
    manifest,
    records,
    clock,
    random,
    deadline,
    nextToken: () => {
      claims += 1
      return `${root}.${claims}`
    },
    registry: new Registry(),
    queue: new InProcessQueue<Told>(clock),
    finished: new FinishedNames(),
  }
  places.set(records, place)
  return place
}

/** The time of a domain: what it is read from, and how long a call takes at most by default. */
export interface DomainTime {
  /** Time. */
  readonly clock: Clock
  /** The domain's deadline, in ms. */
  readonly deadlineMs: number
}

/** The time that a domain's operations go by, found by its records; for the layers above. Refuses others with CAPABILITY_UNSUPPORTED. */
export function timeOfRecords(records: Records): DomainTime {
  const { clock, deadline } = placeOfRecords(records)
  return { clock, deadlineMs: durationMs(deadline) }
}

/** The place that a domain's records belong to, for operations that are defined outside of it. Refuses others with CAPABILITY_UNSUPPORTED. */
export function placeOfRecords(records: Records): Place {
  const place = places.get(records)
  if (place !== undefined) return place
  throw new RepriseError('CAPABILITY_UNSUPPORTED', 'The records do not belong to a domain with operations.')
}
