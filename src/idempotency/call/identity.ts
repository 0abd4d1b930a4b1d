// Which intent a call is about: computed once, from a copy that nobody else holds, before anything else.

import type { StoredRecord } from '../../atomicity/index.js'
import { recordFormat } from '../../atomicity/index.js'
import {
  type Content,
  fingerprint,
  type Key,
  keyAgeMs,
  type Scope,
  type StoredKey,
  sameContent,
} from '../../identity/index.js'
import { RepriseError } from '../../kernel/index.js'
import type { OperationSettings } from '../define/settings.js'
import { operationId } from '../operation-id.js'
import { privateCopy } from './private-copy.js'

/** The identity of one call. It never changes, whatever the body or the caller does to the input. */
export interface CallIdentity<Input> {
  /** The record's name. */
  readonly id: StoredKey
  /** Who may share the key. */
  readonly scope: Scope
  /** The fingerprint of the content; undefined: nothing is compared. */
  readonly fingerprint: string | undefined
  /** What the fingerprint was made of, to be compared with fingerprints made otherwise. */
  readonly content: Content | undefined
  /** The input as it was; handed to nobody, only copied. */
  readonly input: Input
}

/** The identity of a call. Refuses with SCOPE_INVALID, KEY_TOO_OLD, the codes of keys and those of fingerprints. */
export function identify<Input>(settings: OperationSettings<Input>, given: Input, wallMs: number): CallIdentity<Input> {
  const { name, options, oldestKeyMs } = settings
  const input = privateCopy(given)
  const scope = options.scope(input)
  const key = options.key(input)
  const id = operationId(name, scope, key)
  if (oldestKeyMs !== undefined) refuseOld(key, oldestKeyMs, wallMs)
  const content = contentOf(settings, input)
  return {
    id,
    scope,
    fingerprint: content === undefined ? undefined : fingerprint(content, options.fields),
    content,
    input,
  }
}

/** Whether a record is bound to the content of a call, judged by the algorithm and the rule that its fingerprint was made with. */
export function isSameContent(
  identity: CallIdentity<unknown>,
  record: Pick<StoredRecord, 'format' | 'fingerprint'>,
): boolean {
  const { fingerprint: stored, format } = record
  // One of a newer format is refused for that, and nothing in it is read.
  if (stored === undefined || identity.content === undefined || format > recordFormat) return true
  return stored === identity.fingerprint || sameContent(stored, identity.content)
}

function contentOf<Input>({ options }: OperationSettings<Input>, input: Input): Content | undefined {
  const { content } = options
  if (content === 'none') return undefined
  if (content === undefined) return { value: input }
  const given: unknown = content(input)
  if (typeof given !== 'object' || given === null) {
    throw new RepriseError('ARGUMENT_INVALID', 'content gives { value }, { json } or { bytes }.', {
      details: { option: 'content' },
    })
  }
  return 'value' in given ? { value: privateCopy(given.value) } : (given as Content)
}

function refuseOld(key: Key, oldestKeyMs: number, wallMs: number): void {
  const ageMs = keyAgeMs(key, wallMs)
  if (ageMs === undefined || ageMs <= oldestKeyMs) return
  throw new RepriseError('KEY_TOO_OLD', 'The key says that it was minted longer ago than the operation accepts.', {
    details: { ageMs, oldestKeyMs },
  })
}
