// Identity: which intent is this, who may share its name, what content is bound to it, and how long is it remembered?

export { type ContentKeyParts, contentKey, derive } from './derive.js'
export type { FieldRule } from './fields.js'
export {
  type Content,
  checkFieldRule,
  type Fingerprint,
  type FingerprintOptions,
  fingerprint,
  sameContent,
} from './fingerprint.js'
export {
  attemptHeader,
  deadlineHeader,
  type FieldValue,
  type HeaderCodec,
  type KeyFieldOptions,
  type KeyHeaderCodec,
  keyHeader,
  parseKeyField,
  printKeyField,
  type RetryAfterCodec,
  readRetryAfter,
  replayedHeader,
  retryAfterHeader,
  retryOwnerHeader,
} from './headers.js'
export { currentDeadline, currentIntent, deriveKey, type Intent, keyScope, withIntent } from './intent.js'
export {
  isStoredKey,
  type Key,
  type KeyLimits,
  keyAgeMs,
  maxKeyLength,
  mintKey,
  parseKey,
  type Scope,
  type StoredKey,
  scope,
  storedKey,
} from './key.js'
export { otherPepper, type Pepper, type PepperSecret, pepperOf } from './pepper.js'
export {
  acceptedHeader,
  isProducerName,
  isSequenceCount,
  type SequenceHeaderCodec,
  type SequenceNumber,
  sequenceHeader,
  sequenceNumberOf,
} from './sequence-number.js'
export { isRemembered, type KeyWindow, type KeyWindowOptions, keyWindow } from './window.js'
