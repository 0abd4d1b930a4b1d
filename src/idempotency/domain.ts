// What the operations of one domain share in this process: its records, its time, the keys that are being worked on,
// and which operations there are.

import type { RecordManifest, RecordStore, Records } from '../atomicity/index.js'
import type { Drill } from '../drill/index.js'
import {
  type Clock,
  defined,
  durationMs,
  type Random,
  RepriseError,
  systemClock,
  systemRandom,
  uuidv4,
} from '../kernel/index.js'
import type { TransactionDefaults } from '../transaction/index.js'
import type { OperationAnswers } from './definition.js'
import { FinishedNames, InProcessQueue } from './in-process.js'
import type { Ending } from './outcome.js'

/** What the operations of a domain share. */
export interface OperationDomain {
  readonly name: string
  readonly manifest: RecordManifest
  readonly records: Records
  readonly clock: Clock
  readonly random: Random
  /** How long a call takes at most by default, in ms. */
  readonly deadlineMs: number
  /** Repeats calls on purpose; undefined: nobody does. */
  readonly drill: Drill | undefined
  /**
   * Names atomic claims: one random part for all, and a number. Such a claim commits with its outcome and cannot be
   * stolen, so its name only has to tell our own outcome from others' after a lost answer; random bytes for each would
   * be a sixth of what a replay costs.
   */
  readonly tokens: { readonly root: string; last: number }
  /** The answers of its operations, by name, in the order of their definition. */
  readonly operations: Map<string, OperationAnswers>
  /** Where each of them was defined, as file and line, as far as the runtime tells. */
  readonly places: Map<string, string | undefined>
  /** Duplicates that wait. */
  readonly queue: InProcessQueue<Ending>
  /** Keys that were seen to be finished. */
  readonly finished: FinishedNames
}

const domains = new WeakMap<Records, OperationDomain>()
const allOperations = new Set<WeakRef<OperationDomain['operations']>>()

/**
 * What the operations of a store share: made when it is first asked for, one for each store.
 *
 * @param defaults Time, chance, deadline and drill, for the store of a domain. One that belongs to none goes by the
 * system's clock, and its calls take 10 s at most.
 */
export function operationDomain(
  { name, manifest, records }: RecordStore,
  defaults: Pick<TransactionDefaults, 'clock' | 'random' | 'deadline' | 'drill'> = {},
): OperationDomain {
  const known = domains.get(records)
  if (known !== undefined) return known
  const { clock = systemClock, random = systemRandom, deadline = usualDeadlineMs, drill } = defaults
  if (drill !== undefined && typeof drill?.repeat !== 'function') {
    const message = 'The option drill is not valid. It is made by drill(…) of reprise/drill.'
    throw new RepriseError('ARGUMENT_INVALID', message, { details: { option: 'drill' } })
  }
  const operations = new Map<string, OperationAnswers>()
  // Weakly: a domain that is gone takes its operations along.
  for (const other of allOperations) if (other.deref() === undefined) allOperations.delete(other)
  allOperations.add(new WeakRef(operations))
  const domain: OperationDomain = {
    name,
    manifest,
    records,
    clock,
    random,
    deadlineMs: durationMs(deadline),
    drill: drill?.oneIn === 0 ? undefined : drill,
    tokens: { root: uuidv4(random), last: 0 },
    operations,
    places: new Map(),
    queue: new InProcessQueue<Ending>(clock),
    finished: new FinishedNames(),
  }
  domains.set(records, domain)
  return domain
}

const usualDeadlineMs = 10_000

/**
 * Adds a definition. Refuses a name that is taken with OPERATION_DEFINED_TWICE, and says where the first definition is:
 * two bodies would share their records.
 */
export function addOperation({ name: domain, operations, places }: OperationDomain, answers: OperationAnswers): void {
  const operation = answers.name
  if (operations.has(operation)) {
    const definedAt = places.get(operation)
    throw new RepriseError(
      'OPERATION_DEFINED_TWICE',
      `The domain ${domain} has an operation ${operation} already${definedAt === undefined ? '' : `, defined at ${definedAt}`}. Define it once; a test that defines it anew takes a new domain.`,
      { details: { domain, operation, ...defined({ definedAt }) } },
    )
  }
  operations.set(operation, answers)
  places.set(operation, callerPlace())
}

const longestPlace = 200

// File and line of the first frame outside of this package: of whoever defines. The first frame of all is this
// function, which tells where the package is. Undefined where all is one file, or the runtime has no stacks.
function callerPlace(): string | undefined {
  let own: string | undefined
  for (const frame of new Error('definition').stack?.split('\n') ?? []) {
    const place = /(?:\(|\bat |@)(?:async )?(?:file:\/\/)?([^()]+:\d+):\d+\)?$/.exec(frame)?.[1]
    if (place === undefined) continue
    own ??= place.replace(/(?:idempotency[/\\]domain\.[a-z]+)?:\d+$/, '')
    if (!place.startsWith(own)) return place.slice(-longestPlace)
  }
  return undefined
}

/**
 * The five answers of every operation that is defined in this process, of all domains that are in use, in the order of
 * their making.
 */
export function operations(): readonly OperationAnswers[] {
  return [...allOperations].flatMap((known) => [...(known.deref()?.values() ?? [])])
}

/** The time of a domain: what it is read from, and how long a call takes at most by default. */
export interface DomainTime {
  readonly clock: Clock
  readonly random: Random
  /** The domain's deadline, in ms. */
  readonly deadlineMs: number
}

/**
 * The time that the operations of a store go by, found by its records: the domain's, or the system's where they belong
 * to none.
 */
export function timeOfRecords(records: Records): DomainTime {
  return domains.get(records) ?? { clock: systemClock, random: systemRandom, deadlineMs: usualDeadlineMs }
}

/** The drill of the store that keeps these records; undefined: it has none, or one that is off. */
export function drillOfRecords(records: Records): Drill | undefined {
  return domains.get(records)?.drill
}
