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
  type KeyHeaderCodec,
  keyHeader,
  type RetryAfterCodec,
  readRetryAfter,
  replayedHeader,
  retryAfterHeader,
  retryOwnerHeader,
} from './headers.js'
export { currentDeadline, currentIntent, deriveKey, type Intent, keyScope, withIntent } from './intent.js'
export { type Key, type KeyLimits, keyAgeMs, maxKeyLength, mintKey, parseKey } from './key.js'
export { type KeyFieldOptions, parseKeyField, printKeyField } from './key-field.js'
export { type Scope, type StoredKey, scope, storedKey } from './scope.js'
export { isRemembered, type KeyWindow, type KeyWindowOptions, keyWindow } from './window.js'
