// What one call is about: which intent, with which content, and until when. Settled once, from a copy of the input that
// nobody else holds, before anything else.

import { type BoundContent, isSameContent, recordFormat } from '../atomicity/index.js'
import {
  type Content,
  currentDeadline,
  fingerprint,
  type Key,
  keyAgeMs,
  type Pepper,
  parseKey,
  type Scope,
  type StoredKey,
} from '../identity/index.js'
import {
  type Clock,
  type Deadline,
  demandKnown,
  durationMs,
  encodeTuple,
  maxDurationMs,
  parseDigest,
  RepriseError,
  sha256,
} from '../kernel/index.js'
import type { CallOptions } from './definition.js'
import { mismatch } from './errors.js'
import type { Ending } from './outcome.js'
import type { OperationSettings } from './settings.js'

/** The identity of one call. It never changes, whatever the body or the caller does to the input. */
export interface CallIdentity<Input> extends BoundContent {
  /** The record's name. */
  readonly id: StoredKey
  /** Who may share the key, as it is stored. */
  readonly scope: Scope
  /** The input as it was; handed to nobody, only copied. */
  readonly input: Input
}

/** The identity of a call. Refuses with SCOPE_INVALID, KEY_TOO_OLD, the codes of keys and those of fingerprints. */
export function identify<Input>(
  settings: OperationSettings<Input>,
  given: Input,
  clock: Pick<Clock, 'wallMs'>,
  pepper?: Pepper,
): CallIdentity<Input> {
  const { name, options, oldestKeyMs } = settings
  const input = privateCopy(given)
  const owner = options.scope(input)
  const key = options.key(input)
  const id = operationId(name, owner, key, pepper)
  const scope = pepper === undefined ? owner : pepper.hide(owner)
  if (oldestKeyMs !== undefined) refuseOld(key, oldestKeyMs, clock.wallMs())
  if (options.content === 'none') return { id, scope, fingerprint: undefined, content: undefined, input }
  let content: Content = { value: input }
  if (options.content !== undefined) {
    const chosen: unknown = options.content(input)
    if (typeof chosen !== 'object' || chosen === null) {
      const message = 'content gives { value }, { json } or { bytes }.'
      throw new RepriseError('ARGUMENT_INVALID', message, { details: { option: 'content' } })
    }
    content = 'value' in chosen ? { value: privateCopy(chosen.value) } : (chosen as Content)
  }
  const print = fingerprint(content, options.fields)
  if (pepper === undefined) return { id, scope, fingerprint: print, content, input }
  return { id, scope, fingerprint: pepper.hide(print), content, pepper, input }
}

/**
 * The name under which an operation's record is stored: a digest of operation, scope and key, so that none of them is
 * spelled out, and no two of them meet. Refuses with SCOPE_INVALID or the codes of keys.
 *
 * @param pepper The store's, `db.records.pepper`. Default: it has none.
 */
export function operationId(operation: string, scope: Scope, key: Key, pepper?: Pepper): StoredKey {
  try {
    parseDigest(scope)
  } catch (cause) {
    throw new RepriseError('SCOPE_INVALID', 'The scope was not made by scope(…).', { cause })
  }
  const name = sha256(encodeTuple(['op1', operation, scope, parseKey(key)])) as string as StoredKey
  return pepper === undefined ? name : pepper.hide(name)
}

function refuseOld(key: Key, oldestKeyMs: number, wallMs: number): void {
  const ageMs = keyAgeMs(key, wallMs)
  if (ageMs === undefined || ageMs <= oldestKeyMs) return
  throw new RepriseError('KEY_TOO_OLD', 'The key says that it was minted longer ago than the operation accepts.', {
    details: { ageMs, oldestKeyMs },
  })
}

const optionNames = ['deadline', 'signal']

/**
 * When a call ends: as it was told, and never later than the intent in flight. Refuses with ARGUMENT_INVALID and
 * DURATION_INVALID what a call cannot be told.
 *
 * @param usualMs The deadline of a call that says nothing, in ms.
 * @param mostMs The longest that a call may take: one that outlives the memory of its key could find it forgotten, and
 * carry out again what was carried out before. `Infinity` for work under a claim that is held: its window begins with
 * its outcome, and whoever comes between is told apart by token and fence.
 */
export function callDeadline(options: CallOptions, usualMs: number, mostMs: number, clock: Clock): Deadline {
  demandKnown(options, optionNames, 'call options')
  const { deadline, signal } = options
  if (signal !== undefined && typeof signal?.addEventListener !== 'function') {
    throw new RepriseError('ARGUMENT_INVALID', 'The option signal is not valid.', { details: { option: 'signal' } })
  }
  // Routes give a number of ms, which needs no parsing.
  const plain = typeof deadline === 'number' && deadline >= 0 && deadline <= maxDurationMs
  const givenMs = deadline === undefined ? usualMs : plain ? deadline : durationMs(deadline, { option: 'deadline' })
  const lastMs = clock.monotonicMs() + Math.min(givenMs, mostMs)
  const around = currentDeadline()
  return around !== undefined && around.expiresAtMs < lastMs ? around : { expiresAtMs: lastMs }
}

/**
 * A copy of an input that nobody else holds, so that a body that changes its input changes nothing but its own copy.
 * Copies plain objects and arrays, at any depth; references stay shared where they were, and cycles stay cycles.
 * Everything else (instances of classes, dates, buffers, maps, functions) is the same object in the copy.
 */
export function privateCopy<Value>(value: Value): Value {
  if (!isPlain(value)) return value
  const copy = shallow(value)
  // Most inputs are flat, and need no memory of what was copied.
  let copies: Map<object, object> | undefined
  const pending: object[] = [copy]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const container = next as Record<string, unknown>
    for (const name of Object.keys(container)) {
      const member = container[name]
      if (!isPlain(member)) continue
      copies ??= new Map([[value, copy]])
      let inner = copies.get(member)
      if (inner === undefined) {
        inner = shallow(member)
        copies.set(member, inner)
        pending.push(inner)
      }
      container[name] = inner
    }
  }
  return copy as Value
}

function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === Array.prototype || prototype === null
}

// A spread takes `__proto__` for the member it is.
function shallow(value: object): object {
  if (Array.isArray(value)) return value.slice()
  const copy = { ...value }
  const names = Object.getOwnPropertyNames(value)
  // A spread leaves out what is not enumerable; whether that can count is for the fingerprint to say.
  if (names.length > Object.keys(copy).length) {
    for (const name of names) {
      if (Object.hasOwn(copy, name)) continue
      Object.defineProperty(copy, name, Object.getOwnPropertyDescriptor(value, name) as PropertyDescriptor)
    }
  }
  return Object.getPrototypeOf(value) === null ? Object.setPrototypeOf(copy, null) : copy
}

/**
 * How a call ends that waited for the leader of its queue: with what the leader told, if that is about the same
 * content. Refuses with OPERATION_MISMATCH.
 */
export function followed(identity: BoundContent, told: Ending): Ending {
  if (!isSameContent(identity, { format: recordFormat, fingerprint: told.fingerprint })) throw mismatch()
  return { ...told, own: false, whole: undefined, cause: undefined }
}
